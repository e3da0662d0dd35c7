/* tools/job/json.h - parts of the job's JSON, for who puts them into another text. */
#pragma once

#include "job/findings.h"
#include "out/json_write.h"

#define JOB_FORMAT "perfkit job"
#define JOB_SCHEMA 1

void job_json_spread(pki_json *j, const char *key, const job_spread *s);

/* All members of the job's object. */
void job_json_members(pki_json *j, const job_findings *f);
