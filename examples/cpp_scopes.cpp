/* cpp_scopes.cpp - C++: sessions and regions as objects, closed on every way out, exceptions
 * included.
 *
 *     c++ cpp_scopes.cpp $(pkg-config --cflags --libs pk) -o cpp_scopes && ./cpp_scopes
 */
#include <pk/pk.hpp>

#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace
{

pk_region parse = PK_REGION_OF(PK_DATA, "parse");
pk_region solve = PK_REGION_OF(PK_COMPUTE, "solve");

/* A scope closes when the exception passes, like any other object. */
int parse_number(const std::string &text)
{
    pk::scope scope(parse);
    scope.add(text.size());
    return std::stoi(text);
}

double solve_for(int terms)
{
    pk::scope scope(solve);
    double sum = 0;
    for (int i = 1; i <= terms; i++)
        sum += 1.0 / i;
    return sum;
}

void handle(const std::string &text)
{
    pk::scope scope("handle " + text); /* looked up by name: for what is not hot */
    try {
        solve_for(parse_number(text));
    } catch (const std::invalid_argument &) {
        std::cout << "not a number: " << text << '\n';
    }
}

/* Calls recorded so far. */
uint64_t calls_of(const pk_region &region)
{
    pk_stats stats;
    return pk_region_stats(&region, &stats) == PK_OK ? stats.count : 0;
}

} // namespace

int main()
{
    pk::options options;
    options.trace_path = "cpp_scopes.json";
    options.report_path = "-";
    pk::session session(options); /* stops, and writes, at the end of main */
    if (!session) {
        std::cerr << "perfkit: " << pk_error_message() << '\n';
        return 1;
    }

    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++)
        threads.emplace_back([] {
            for (const char *text : {"1000", "many", "20000"})
                handle(text);
        });
    for (std::thread &thread : threads)
        thread.join();

    pk_counts counts = {};
    counts.size = sizeof(counts);
    pk_get_counts(&counts);
    std::cout << calls_of(parse) << " parsed, " << calls_of(solve) << " solved\n";
    return calls_of(parse) == 9 && calls_of(solve) == 6 && counts.unbalanced == 0 ? 0 : 1;
}
