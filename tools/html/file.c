#include "html/file.h"

#include <string.h>

#include "html/html.h"
#include "files.h"

static bool is_standard(const char *path)
{
    return strcmp(path, "-") == 0;
}

bool html_can_write(const char *path, complaint *why)
{
    if (!html_is_there)
        return complaint_set(
            why, "this pk was built without uPlot, which draws the charts of --html: in perfkit's"
                 " sources run `./dev charts`, then `meson setup --reconfigure` and build");
    return is_standard(path) || output_check(path, OUTPUT_OR_STANDARD, why);
}

bool html_write_file(const char *path, html_page *write, const void *of, complaint *why)
{
    output page = {.to = stdout};
    if (!is_standard(path) && !output_open(&page, path, OUTPUT_OR_STANDARD, why))
        return false;
    int error = write(of, page.to);
    if (error)
        complaint_set(why, "%s could not be written: %s", path, strerror(-error));
    return is_standard(path) ? !error : output_close(&page, !error, why);
}
