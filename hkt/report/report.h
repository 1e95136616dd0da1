#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace hkt::report {

struct ReportRequest {
  std::vector<std::filesystem::path> runs;           // run folders
  std::optional<std::filesystem::path> experiments;  // the folder, not one tier's
  std::string tier = "small";
  bool example = true;  // with a run's example: its tokens and its matrices
};

// Everything that the page, report.md and --json show: docs/report.md lists the keys. Throws Error
// that names the file for any that is damaged, foreign or of a newer version; what is not there yet
// is named in the document instead.
nlohmann::ordered_json MakeReport(const ReportRequest& request);

// The parts: "experiments", and one of "runs".
nlohmann::ordered_json ReportExperiments(const std::filesystem::path& folder,
                                         const std::string& tier);
nlohmann::ordered_json ReportRun(const std::filesystem::path& folder, bool example);

// The document's tables as Markdown: report.md.
std::string MakeMarkdown(const nlohmann::ordered_json& document);

}  // namespace hkt::report
