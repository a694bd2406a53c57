#include "coordinator/cli/plugin_test/plugin_test.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "coordinator/cli/local_verbs.h"
#include "coordinator/cli/plugin_path.h"
#include "coordinator/cli/plugin_test/checks.h"
#include "coordinator/cli/plugin_test/plan.h"
#include "coordinator/cli/plugin_test/report.h"
#include "coordinator/difference.h"
#include "coordinator/registry.h"
#include "coordinator/schema_check.h"

namespace muster::cli {
namespace conformance {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kWorkers = 2;
constexpr std::size_t kShortestCanary = 8;  // below, a value stands in any text

/// A directory for one run.
class TestDirectory {
 public:
  TestDirectory() {
    std::string pattern = (fs::temp_directory_path() / "muster-plugin-test-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw Stopped(pattern + " cannot be made");
    path_ = pattern;
    for (const char* name : {"tmp", "tmp2", "secrets"}) fs::create_directory(path_ / name);
  }
  ~TestDirectory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TestDirectory(const TestDirectory&) = delete;
  TestDirectory& operator=(const TestDirectory&) = delete;
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string small(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

class Run {
 public:
  Run(Screen& screen, const PluginTestOptions& options, const Environment& env, const Interrupted& interrupted,
      Inputs inputs, const std::string& executable)
      : screen_(screen), options_(options), inputs_(std::move(inputs)), report_(screen), env_(env) {
    for (const auto& [name, value] : inputs_.target.env) env_[name] = value;
    word_ = "k" + small(make_token(random_).substr(0, 7));
    canary_ = "canary" + make_token(random_);
    std::ofstream(directory_.path() / "secrets" / "canary") << canary_ << '\n';
    const auto log = [&screen](std::string_view line) {
      if (screen.verbosity == Verbosity::kVerbose) screen.err << escape(line) << '\n';
    };
    fleet_.emplace(FleetOptions{executable, env_, {}, directory_.path(), {canary_}, interrupted, log});
  }

  int run() {
    try {
      make_systems();
      if (!mistakes_.empty()) return cli::report(screen_, mistakes_);
      begin();
      check_inputs();
      if (mistakes_.empty()) run_checks();
    } catch (const Stopped& stopped) {
      report_.add({"test", "", Outcome::kFailed, stopped.what(), {}});
    }
    end();
    if (!mistakes_.empty()) return cli::report(screen_, mistakes_);
    return report_.finish();
  }

 private:
  /// The target's systems as jobs name them; secrets of their configurations become canaries, too.
  void make_systems() {
    const auto& target = inputs_.target;
    add_system(target.config, "test");
    if (target.config2) add_system(*target.config2, "test-2");
    if (target.bad) add_system(*target.bad, "test-bad");
  }

  void add_system(const Template& source, const std::string& name) {
    Values values;
    values.unique = word_;
    values.canary = canary_;
    values.place = [this](const std::string& place) { return (directory_.path() / place).string(); };
    values.property = [](const std::string&, const std::string&) { return std::nullopt; };
    auto config = fill(source, values);
    if (!config) {
      mistakes_.push_back({options_.target, source.node.line, source.node.column, config.error().message});
      return;
    }
    System system;
    system.target = {TargetId(make_ulid(std::chrono::system_clock::now(), random_)), name, std::move(*config)};
    system.config = Json::parse(system.target.config.json);
    for (const auto& secret : system.target.config.secrets) watch(secret);
    (name == "test-bad" ? bad_ : systems_).push_back(std::move(system));
  }

  /// What a worker may read of the configuration's secrets, and must not tell.
  void watch(const Secret& secret) {
    auto& fleet = fleet_->options();
    for (const auto& part : secret.parts) {
      std::string value;
      if (part.kind == SecretPart::Kind::kEnv && env_.contains(part.text)) value = env_[part.text];
      if (part.kind == SecretPart::Kind::kFile) {
        fleet.allow_files.push_back(part.text);
        std::getline(std::ifstream(part.text), value);
      }
      if (value.size() >= kShortestCanary) fleet.canaries.push_back(value);
    }
  }

  void begin() {
    note(screen_, "starting a nats-server and " + std::to_string(kWorkers) + " workers");
    fleet_->start();
    fleet_->have_workers(kWorkers);
    const auto& said = fleet_->announcement();
    report_.add({"announce", "", Outcome::kOk, said.plugin + " " + said.version + ", namespace " + said.ns, {}});
    bench_.emplace(*fleet_, inputs_, systems_, word_, canary_, directory_.path(), env_);
  }

  /// Mistakes in the author's files that only show beside the manifest.
  void check_inputs() {
    const auto& manifest = fleet_->manifest();
    const auto& target = inputs_.target;
    if (!target.ns.empty() && target.ns != manifest.ns) {
      mistakes_.push_back({options_.target, 1, 1, "the plugin serves " + manifest.ns + ", not " + target.ns});
    }
    if (auto schema = SchemaCheck::compile(manifest.config_schema)) {
      Fixture file;
      file.file = options_.target;
      const auto& source = target.config;
      const auto& config = systems_.front().target.config;
      add_faults(file, source, *schema, config);
    }
    for (const auto& fixture : inputs_.fixtures) {
      const auto* type = bench_->type(fixture.type);
      if (type == nullptr) {
        mistakes_.push_back(
            {fixture.file, fixture.type_node.line, fixture.type_node.column, "the plugin has no type " + fixture.type});
      } else if (auto schema = SchemaCheck::compile(type->schema)) {
        add_faults(fixture, *fixture.create, *schema, {fixture.create->json.dump(), {}});
      }
    }
    for (const auto& wanted : options_.checks) {
      if (std::ranges::find(type_checks(), wanted, &Check::name) == type_checks().end())
        mistakes_.push_back({"--check", 0, 0, "there is no check " + wanted});
    }
    for (const auto& wanted : options_.types) {
      if (std::ranges::find(inputs_.fixtures, wanted, &Fixture::type) == inputs_.fixtures.end())
        mistakes_.push_back({options_.fixtures, 0, 0, "there is no fixture of type " + wanted});
    }
  }

  /// What is to be filled in is not known yet, or not to be known here.
  void add_faults(const Fixture& fixture, const Template& source, const SchemaCheck& schema, const Document& document) {
    std::vector<std::string> unknown;
    for (const auto& hole : source.holes) unknown.push_back(hole.first);
    const auto faults = schema.faults(Json::parse(document.json), unknown);
    if (!faults) {
      mistakes_.push_back(mistake_at(fixture, source.node, {}, faults.error().message));
      return;
    }
    for (const auto& fault : *faults) {
      mistakes_.push_back(mistake_at(fixture, source.node, fault.pointer, fault.message));
    }
  }

  static bool is_wanted(const std::vector<std::string>& wanted, const std::string& name) {
    return wanted.empty() || std::ranges::find(wanted, name) != wanted.end();
  }

  /// Runs one check, and says how it went.
  /// returns   whether it did not fail
  bool row(const std::string& name, const std::string& type, const std::function<std::string()>& check) {
    Row row{name, type, Outcome::kOk, {}, {}};
    const auto begun = std::chrono::steady_clock::now();
    try {
      row.seen = check();
    } catch (const CheckFailed& failed) {
      row.outcome = Outcome::kFailed;
      row.seen = failed.what();
    } catch (const CheckSkipped& skipped) {
      row.outcome = Outcome::kSkipped;
      row.seen = skipped.what();
    }
    auto complaints = fleet_->take_leaks();
    for (auto& death : fleet_->take_deaths()) complaints.push_back(std::move(death));
    for (const auto& complaint : complaints) {
      if (row.outcome != Outcome::kFailed) row.seen.clear();
      row.outcome = Outcome::kFailed;
      if (row.seen.find(complaint) == std::string::npos) row.seen += (row.seen.empty() ? "" : "; ") + complaint;
    }
    row.took = std::chrono::duration_cast<Millis>(std::chrono::steady_clock::now() - begun);
    const bool good = row.outcome != Outcome::kFailed;
    report_.add(std::move(row));
    fleet_->have_workers(kWorkers);
    return good;
  }

  void run_checks() {
    const auto& manifest = fleet_->manifest();
    row("manifest", "", [&] { return check_manifest(*bench_); });
    row("inspect", "", [&] { return check_inspect(*bench_); });
    row("credentials", "", [&] { return check_credentials(*bench_, bad_); });
    std::string without;
    for (const auto& type : manifest.types) {
      if (!is_wanted(options_.types, type.name)) continue;
      if (!type.examples.empty()) row("examples", type.name, [&] { return check_examples(type); });
      if (is_root(type)) row("inventory", type.name, [&] { return check_inventory(*bench_, type); });
      const auto fixture = std::ranges::find(inputs_.fixtures, type.name, &Fixture::type);
      if (fixture == inputs_.fixtures.end()) {
        without += (without.empty() ? "" : ", ") + type.name;
      } else {
        run_type(type, *fixture);
      }
    }
    if (!without.empty()) report_.add({"fixture", "", Outcome::kSkipped, "there is none of " + without, {}});
  }

  void run_type(const TypeDescriptor& type, const Fixture& fixture) {
    std::optional<Scope> scope;
    row("fixture", type.name, [&] {
      const Case it{*bench_, fixture, type, {}};
      it.need(Operation::kCreate);
      it.need(Operation::kRead);
      scope = bench_->prepare(fixture, 0);
      return scope->objects.empty() ? "needs nothing" : "needs " + std::to_string(scope->objects.size()) + " objects";
    });
    if (!scope) return;
    const Case it{*bench_, fixture, type, *scope};
    for (const auto& check : type_checks()) {
      if (!is_wanted(options_.checks, check.name)) continue;
      if (row(check.name, type.name, [&] { return check.run(it); })) continue;
      try {
        bench_->tidy(fixture, *scope);
      } catch (const CheckFailed& failed) {
        report_.add({"tidy", type.name, Outcome::kFailed, failed.what(), {}});
      }
    }
    row("left-over", type.name, [&] {
      const auto left = bench_->put_away(fixture, *scope);
      return left == 0 ? std::string("nothing") : std::to_string(left) + " objects that no check knew of, deleted";
    });
  }

  /// Deletes what is left, whatever has happened.
  void end() {
    try {
      fleet_->give_up();
      if (bench_) {
        fleet_->have_workers(1);
        for (const auto& left : bench_->clean_up()) {
          report_.add({"clean-up", "", Outcome::kFailed, "is left: " + left, {}});
        }
      }
      fleet_->stop();
    } catch (const Stopped& stopped) {
      report_.add({"clean-up", "", Outcome::kFailed, std::string("not done: ") + stopped.what(), {}});
    }
  }

  Screen& screen_;
  const PluginTestOptions& options_;
  Inputs inputs_;
  Report report_;
  Environment env_;
  SystemRandom random_;
  TestDirectory directory_;
  std::string word_, canary_;
  std::optional<TestFleet> fleet_;
  std::optional<Bench> bench_;
  std::vector<System> systems_, bad_;
  std::vector<ConfigMistake> mistakes_;
};

}  // namespace
}  // namespace conformance

int plugin_test(Screen& screen, const PluginTestOptions& options, const Environment& env,
                const Interrupted& interrupted) {
  const auto executable = find_plugin(options.plugin, own_directory(), env);
  if (!executable) {
    screen.err << "muster: " << escape(executable.error().message) << std::endl;
    return 2;
  }
  auto inputs = conformance::read_inputs(options.target, options.fixtures);
  if (!inputs.mistakes.empty()) return report(screen, inputs.mistakes);
  try {
    return conformance::Run(screen, options, env, interrupted, std::move(inputs), *executable).run();
  } catch (const conformance::Stopped& stopped) {
    screen.err << "muster: " << escape(stopped.what()) << std::endl;
    return 1;
  }
}

}  // namespace muster::cli
