// Pages of the plugin that go on their way as one answer.

#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sdk_harness.h"

namespace muster::testing {
namespace {

// Where the function of a listing is called.
struct InThread {};
struct OnLoop {};

/// A plugin whose listing has `things` things, two to a page, and what happens at each of its pages.
template <typename Where>
struct Listing {
  explicit Listing(int of) : things(of) {
    auto& type = plugin.type({.name = "PG::Thing", .list_gives = ListGives::kProperties});
    if (std::is_same_v<Where, OnLoop>) {
      type.list_async([this](const AsyncList& call) {
        call.after(Millis{0}, [this, call] { call.answer(list(call.request(), call.context())); });
      });
    } else {
      type.list([this](const ListRequest& request, JobContext& context) { return list(request, context); });
    }
  }
  Result<ListPage> list(const ListRequest& request, JobContext& context) {
    asked.push_back(request.page_token + "/" + std::to_string(request.page_size));
    const int first = request.page_token.empty() ? 0 : std::stoi(request.page_token);
    if (asked.size() == 1) context.count_calls(first_calls);
    ListPage page;
    page.skipped = 1;
    for (int i = first; i < std::min({things, first + 2, first + static_cast<int>(request.page_size)}); ++i) {
      page.items.push_back({"thing-" + std::to_string(i), Properties{{"n", i}}, ""});
    }
    const int next = first + static_cast<int>(page.items.size());
    if (next < things) page.next_page_token = std::to_string(next);
    return at_page ? at_page(std::move(page)) : Result<ListPage>(std::move(page));
  }

  const int things;
  Plugin plugin{{.name = "pages", .ns = "PG", .version = "1.0.0"}};
  std::uint32_t first_calls = 0;  // that the first page says it cost
  std::vector<std::string> asked;
  std::function<Result<ListPage>(ListPage)> at_page;
};

using Asked = std::vector<std::string>;

ListJob pages(std::uint16_t count, std::uint32_t size = 1000) {
  return {.parent = {}, .page_token = {}, .page_size = size, .pages = count};
}

struct Answer {
  ListResult list;
  std::uint32_t calls = 0;
};

/// Runs a listing as job `t`.
void start(WorkerHarness& worker, const ListJob& list) {
  worker.start_accepted();
  worker.resolve_config();
  worker.send_to_pool(worker.job("t", list));
  if (!worker.submitted().empty()) worker.run_one();
}

Answer answer(WorkerHarness& worker, const ListJob& list) {
  start(worker, list);
  return {std::get<ListResult>(worker.result("t")), worker.replies("t").back().calls};
}

TEMPLATE_TEST_CASE("An answer holds the pages that it may, and counts a call for each", "", InThread, OnLoop) {
  Listing<TestType> listing(100);
  WorkerHarness worker(listing.plugin);
  const Answer got = answer(worker, pages(3));
  CHECK(listing.asked == Asked{"/1000", "2/1000", "4/1000"});
  CHECK(got.calls == 3);
  REQUIRE(got.list.items.size() == 6);
  for (std::size_t i = 0; i < 6; ++i) CHECK(got.list.items[i].native_id == "thing-" + std::to_string(i));
  CHECK(got.list.next_page_token == "6");
  CHECK(got.list.skipped == 3);
}

TEMPLATE_TEST_CASE("What a page says it cost is added to what the others cost", "", InThread, OnLoop) {
  Listing<TestType> listing(100);
  listing.first_calls = 3;
  WorkerHarness worker(listing.plugin);
  CHECK(answer(worker, pages(3)).calls == 5);
}

TEMPLATE_TEST_CASE("Who asks for no number of pages gets one", "", InThread, OnLoop) {
  for (const std::uint16_t none : {0, 1}) {
    Listing<TestType> listing(100);
    WorkerHarness worker(listing.plugin);
    CHECK(answer(worker, pages(none)).list.items.size() == 2);
    CHECK(listing.asked.size() == 1);
  }
}

TEMPLATE_TEST_CASE("An answer of several pages ends with the listing", "", InThread, OnLoop) {
  Listing<TestType> listing(5);
  WorkerHarness worker(listing.plugin);
  const Answer got = answer(worker, pages(64));
  CHECK(got.list.items.size() == 5);
  CHECK(got.list.next_page_token.empty());
}

TEMPLATE_TEST_CASE("An answer of several pages has no more items than are wanted", "", InThread, OnLoop) {
  Listing<TestType> listing(100);
  WorkerHarness worker(listing.plugin);
  const Answer got = answer(worker, pages(64, 5));
  CHECK(listing.asked == Asked{"/5", "2/5"});  // one size throughout
  CHECK(got.list.items.size() == 4);
  CHECK(got.list.next_page_token == "4");

  Listing<TestType> fits(100);
  WorkerHarness other(fits.plugin);
  CHECK(answer(other, pages(64, 4)).list.items.size() == 4);
}

TEMPLATE_TEST_CASE("Pages that grow make no answer with more items than are wanted", "", InThread, OnLoop) {
  Listing<TestType> listing(100);
  WorkerHarness worker(listing.plugin);
  listing.at_page = [&](ListPage page) -> Result<ListPage> {
    if (listing.asked.size() == 1) page.items.pop_back();
    return page;
  };
  CHECK(answer(worker, pages(64, 4)).list.items.size() == 3);  // the next may have two as well
}

TEMPLATE_TEST_CASE("Pages that come slowly are answered one at a time", "", InThread, OnLoop) {
  Listing<TestType> listing(100);
  WorkerHarness worker(listing.plugin);
  listing.at_page = [&](ListPage page) -> Result<ListPage> {
    worker.stall(Millis{10});
    return page;
  };
  CHECK(answer(worker, pages(64)).list.items.size() == 2);
  CHECK(listing.asked.size() == 1);
}

TEMPLATE_TEST_CASE("Large pages are answered before more are made", "", InThread, OnLoop) {
  Listing<TestType> listing(100);
  WorkerHarness worker(listing.plugin);
  listing.at_page = [&](ListPage page) -> Result<ListPage> {
    for (auto& item : page.items) item.properties = Properties{{"text", std::string(100'000, 'x')}};
    return page;
  };
  CHECK(answer(worker, pages(64)).list.items.size() == 4);
}

TEMPLATE_TEST_CASE("A page that is large by itself is left to who asks for it", "", InThread, OnLoop) {
  Listing<TestType> listing(100);
  WorkerHarness worker(listing.plugin);
  listing.at_page = [&](ListPage page) -> Result<ListPage> {
    if (listing.asked.size() < 2) return page;
    for (auto& item : page.items) item.properties = Properties{{"text", std::string(200'000, 'x')}};
    return page;
  };
  const Answer got = answer(worker, pages(64));
  CHECK(got.list.items.size() == 2);
  CHECK(got.list.next_page_token == "2");
}

TEMPLATE_TEST_CASE("A page that fails is left to who asks for it", "", InThread, OnLoop) {
  Listing<TestType> listing(100);
  WorkerHarness worker(listing.plugin);
  listing.at_page = [&](ListPage page) -> Result<ListPage> {
    if (listing.asked.size() > 2) return throttled("slowly", Millis{100});
    return page;
  };
  const Answer got = answer(worker, pages(64));
  CHECK(got.list.items.size() == 4);
  CHECK(got.list.next_page_token == "4");
  CHECK(got.calls == 3);
  worker.send_to_pool(worker.job("next", ListJob{.parent = {}, .page_token = "4", .page_size = 1000, .pages = 64}));
  if (!worker.submitted().empty()) worker.run_one();
  CHECK(worker.failed("next").code == Errc::kThrottling);
}

TEMPLATE_TEST_CASE("What could not be listed ends an answer of several pages, and is in it", "", InThread, OnLoop) {
  Listing<TestType> listing(100);
  WorkerHarness worker(listing.plugin);
  listing.at_page = [&](ListPage page) -> Result<ListPage> {
    if (listing.asked.size() == 2) page.problems.push_back({"thing-x", access_denied("not yours")});
    return page;
  };
  const Answer got = answer(worker, pages(64));
  CHECK(got.list.items.size() == 4);
  REQUIRE(got.list.problems.size() == 1);
  CHECK(got.list.problems.front().native_id == "thing-x");
  CHECK(got.list.next_page_token == "4");
}

TEMPLATE_TEST_CASE("A plugin that turns on the spot is not asked for ever", "", InThread, OnLoop) {
  Listing<TestType> listing(100);
  WorkerHarness worker(listing.plugin);
  SECTION("with the same token") {
    listing.at_page = [](ListPage page) -> Result<ListPage> {
      page.next_page_token = "2";
      return page;
    };
  }
  SECTION("with pages that hold nothing") {
    listing.at_page = [&](ListPage page) -> Result<ListPage> {
      if (listing.asked.size() > 1) page.items.clear();
      return page;
    };
  }
  const Answer got = answer(worker, pages(64));
  CHECK(listing.asked.size() == 2);
  CHECK(got.list.items.size() == 2);
  CHECK_FALSE(got.list.next_page_token.empty());
}

TEMPLATE_TEST_CASE("A listing that is stopped makes no further page", "", InThread, OnLoop) {
  Listing<TestType> listing(100);
  WorkerHarness worker(listing.plugin);
  listing.at_page = [&](ListPage page) -> Result<ListPage> {
    worker.control(Cancel{{JobId("job-t"), Token("t")}});
    return page;
  };
  start(worker, pages(64));
  CHECK(listing.asked.size() == 1);
  CHECK(worker.failed("t").code == Errc::kCancelled);
}

}  // namespace
}  // namespace muster::testing
