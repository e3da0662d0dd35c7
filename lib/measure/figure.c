#include "measure/figure.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define DIGITS 24 /* a 64-bit number, its point and its sign */

/* value, not negative and below 2^63 / 10^decimals, with so many decimals. */
static void put_fixed(char *out, size_t size, double value, int decimals)
{
    static const int64_t powers[] = {1, 10, 100, 1000};
    int64_t power = powers[decimals];
    int64_t whole = llround(value * (double)power);
    if (decimals == 0)
        snprintf(out, size, "%" PRId64, whole);
    else
        snprintf(out, size, "%" PRId64 ".%0*" PRId64, whole / power, decimals, whole % power);
}

/* Decimals that make three digits, and no fourth by rounding up. */
static int decimals_of(double value)
{
    return value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
}

static pki_figure put_unit(const char *digits, const char *gap, const char *prefix,
                           const char *unit)
{
    pki_figure figure;
    snprintf(figure.text, sizeof figure.text, "%.20s%s%s%.11s", digits, gap, prefix, unit);
    return figure;
}

static pki_figure put_digits(double value, const char *gap, const char *prefix, const char *unit)
{
    char digits[DIGITS];
    put_fixed(digits, sizeof digits, value, decimals_of(value));
    return put_unit(digits, gap, prefix, unit);
}

static pki_figure put_pair(uint64_t big, uint64_t small, const char *const units[2], int tight)
{
    pki_figure figure;
    snprintf(figure.text, sizeof figure.text,
             tight ? "%" PRIu64 "%.1s%02" PRIu64 "%.1s" : "%" PRIu64 " %s %02" PRIu64 " %s", big,
             units[0], small, units[1]);
    return figure;
}

static pki_figure put_long_time(double seconds, int tight)
{
    static const char *const minutes[] = {"min", "s"}, *const hours[] = {"h", "min"},
                             *const days[] = {"d", "h"};
    if (seconds > 9e15) /* 285 million years: not a time that anybody measured */
        return (pki_figure){"-"};
    uint64_t s = (uint64_t)llround(seconds), m = (s + 30) / 60, h = (s + 1800) / 3600;
    if (s < 3600)
        return put_pair(s / 60, s % 60, minutes, tight);
    if (m < 24 * 60)
        return put_pair(m / 60, m % 60, hours, tight);
    return put_pair(h / 24, h % 24, days, tight);
}

static pki_figure put_time(double ns, int tight)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    if (!isfinite(ns) || ns < 0)
        return (pki_figure){"-"};
    if (ns < 999.5 && ns == floor(ns)) {
        char digits[DIGITS];
        snprintf(digits, sizeof digits, "%d", (int)ns);
        return put_unit(digits, tight ? "" : " ", "", "ns");
    }
    double value = ns;
    for (int u = 0; u < 4; u++, value /= 1000)
        if (value < (u < 3 ? 999.5 : 99.95))
            return put_digits(value, tight ? "" : " ", "", units[u]);
    return put_long_time(ns / 1e9, tight);
}

pki_figure pki_figure_time(double ns)
{
    return put_time(ns, 0);
}

pki_figure pki_figure_time_tight(double ns)
{
    return put_time(ns, 1);
}

/* 1.23e-5 */
static pki_figure put_power(double value, const char *gap, const char *unit)
{
    int exponent = (int)floor(log10(value));
    double digits = value / pow(10, exponent);
    if (digits >= 9.995) {
        digits /= 10;
        exponent++;
    }
    char fixed[DIGITS], power[DIGITS];
    put_fixed(fixed, sizeof fixed, digits, 2);
    snprintf(power, sizeof power, "%.12se%d", fixed, exponent);
    return put_unit(power, gap, "", unit);
}

static pki_figure put_scaled(double value, const char *gap, const char *unit)
{
    static const char prefixes[] = "KMGTPE";
    double size = value;
    int thousands = 0;
    for (; size >= 999.5 && thousands < 6; thousands++)
        size /= 1000;
    if (size >= 999.5)
        return put_power(value, gap, unit);
    const char prefix[] = {thousands ? prefixes[thousands - 1] : '\0', '\0'};
    return put_digits(size, gap, prefix, unit);
}

pki_figure pki_figure_count(uint64_t count)
{
    if (count >= 100000)
        return put_scaled((double)count, "", "");
    pki_figure figure;
    snprintf(figure.text, sizeof figure.text, "%" PRIu64, count);
    return figure;
}

static pki_figure negated(pki_figure figure)
{
    pki_figure with_sign;
    snprintf(with_sign.text, sizeof with_sign.text, "-%.38s", figure.text);
    return with_sign;
}

pki_figure pki_figure_scaled(double value, const char *unit)
{
    if (!isfinite(value))
        return (pki_figure){"-"};
    if (value < 0)
        return negated(pki_figure_scaled(-value, unit));
    const char *gap = unit[0] ? " " : "";
    if (value < 999.5 && value == floor(value)) {
        char digits[DIGITS];
        snprintf(digits, sizeof digits, "%d", (int)value);
        return put_unit(digits, gap, "", unit);
    }
    if (value < 0.01)
        return put_power(value, gap, unit);
    if (value < 0.9995) {
        char digits[DIGITS];
        put_fixed(digits, sizeof digits, value, 3);
        return put_unit(digits, gap, "", unit);
    }
    return put_scaled(value, gap, unit);
}

pki_figure pki_figure_percent(double share)
{
    double percent = 100 * share;
    if (!isfinite(share) || percent > 1e9 || percent < -1e9)
        return (pki_figure){"-"};
    if (percent < 0)
        return negated(pki_figure_percent(-share));
    if (percent == 0)
        return (pki_figure){"0 %"};
    if (percent < 0.005)
        return (pki_figure){"<0.01 %"};
    pki_figure figure;
    char digits[DIGITS];
    put_fixed(digits, sizeof digits, percent, percent < 0.995 ? 2 : percent < 99.95 ? 1 : 0);
    snprintf(figure.text, sizeof figure.text, "%s %%", digits);
    return figure;
}

pki_figure pki_figure_ratio(double ratio)
{
    if (!isfinite(ratio) || ratio < 0 || ratio > 1e9)
        return (pki_figure){"-"};
    return put_digits(ratio, " ", "", "x");
}
