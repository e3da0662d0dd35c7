/* tools/html/none.c - the pages where uPlot was not there when pk was built: none. */
#include "html/html.h"

const unsigned char html_before[1], html_behind[1], job_html_before[1], job_html_behind[1];
const size_t html_before_bytes, html_behind_bytes, job_html_before_bytes, job_html_behind_bytes;
