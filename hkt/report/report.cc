#include "hkt/report/report.h"

#include "hkt/base/error.h"
#include "hkt/base/version.h"

namespace hkt::report {

using Json = nlohmann::ordered_json;

Json MakeReport(const ReportRequest& request) {
  CheckUsage(request.experiments || !request.runs.empty(),
             "nothing to report; name run folders, --experiments, or both");
  Json document = {{"hkt_version", Version()}};
  document["experiments"] =
      request.experiments ? ReportExperiments(*request.experiments, request.tier) : Json(nullptr);
  document["runs"] = Json::array();
  for (const auto& run : request.runs) document["runs"].push_back(ReportRun(run, request.example));
  return document;
}

}  // namespace hkt::report
