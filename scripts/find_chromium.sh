#!/bin/sh
# Prints the Chromium that draws the report's page in tests and figures: the one that CHROMIUM names, else the first that is
# there. Fails, printing nothing, where there is none.
for name in ${CHROMIUM:-chromium chromium-browser google-chrome google-chrome-stable}; do
  command -v "$name" 2>/dev/null && exit 0
done
exit 1
