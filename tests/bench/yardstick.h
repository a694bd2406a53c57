#pragma once

#include <cstdint>
#include <string>

/// Straight-line programs that do what the product is measured against, and nothing else. Each is a process of its own
/// and prints one line of JSON at its end.
namespace muster::bench {

struct PageOptions {
  std::string url;
  std::string kind = "same-work";  // or bare
  std::string store;               // path of the SQLite file to make
  std::uint32_t resources = 300'000;
  std::uint32_t types = 1;  // listings, each of which asks for one page at a time
  std::uint32_t page = 64;  // resources in a message
  std::size_t bytes = 600;  // of the properties of each
  bool reads = false;       // pages have ids only, which are read in batches of 64
  int passes = 2;
  double filtered = 0;  // share that the first filter excludes
  double changed = 0;   // share with another revision
};
int serve_pages(const PageOptions& options);   // yardstick_worker.cpp
int run_pipeline(const PageOptions& options);  // yardstick_pipeline.cpp

struct RequestOptions {
  std::string url;
  std::uint32_t count = 100'000;
  std::uint32_t window = 256;              // in flight
  std::size_t request = 200, reply = 600;  // bytes
  bool same_subjects = false;              // of replies, for each place in flight
  std::uint32_t place = 0;                 // of a worker with slots, from 0; `count` of them are asked
  double seconds = 2;                      // for so long
};
int serve_echo(const RequestOptions& options);  // yardstick_requests.cpp
/// Answers after 20 ms.
int serve_slots(const RequestOptions& options);    // yardstick_slots.cpp
int run_slots(const RequestOptions& options);      // yardstick_slots.cpp: always as many jobs with each as it has slots
int serve_silence(const RequestOptions& options);  // yardstick_requests.cpp: hears what JetStream is asked
/// `count` connections hear all events, and say so with a line each.
int observe(const RequestOptions& options);       // yardstick_requests.cpp
int run_requests(const RequestOptions& options);  // yardstick_requests.cpp

struct CommitOptions {
  std::string store;
  std::int64_t count = 10'000;
};
int run_commits(const CommitOptions& options);  // yardstick_commits.cpp

}  // namespace muster::bench
