#include "support/postgres_server.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/fleet_client.h"
#include "support/nats_server.h"

namespace muster::test {
namespace {

namespace fs = std::filesystem;

constexpr int kLaunches = 20;  // a port that was free a moment ago can be taken by another server
constexpr std::chrono::seconds kAnswersWithin{120};
constexpr std::chrono::milliseconds kPause{200};  // backends that a killed server leaves hold its memory for a moment
constexpr std::chrono::milliseconds kRound{10};
constexpr int kStatusLine = 8;  // of postmaster.pid

/// The newest installed version's programs; they are not in PATH.
fs::path find_programs() {
  std::set<std::pair<int, fs::path>> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("/usr/lib/postgresql", none)) {
    const auto programs = entry.path() / "bin";
    if (fs::exists(programs / "initdb")) found.emplace(std::atoi(entry.path().filename().c_str()), programs);
  }
  if (found.empty())
    throw std::runtime_error("no PostgreSQL server here: apt-get install --no-install-recommends postgresql");
  return found.rbegin()->second;
}

/// Who runs the programs: PostgreSQL refuses root.
const passwd* other_user() {
  if (::geteuid() != 0) return nullptr;
  const passwd* user = ::getpwnam("postgres");
  if (user == nullptr) throw std::runtime_error("no user postgres: apt-get install --no-install-recommends postgresql");
  return user;
}

/// Starts a program whose output goes to `log`. It is told `death` when this process dies.
pid_t spawn(std::vector<std::string> words, const fs::path& log, int death) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const passwd* user = other_user();
  const uid_t uid = user == nullptr ? 0 : user->pw_uid;
  const gid_t gid = user == nullptr ? 0 : user->pw_gid;
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) throw std::runtime_error("fork failed");
  if (pid > 0) return pid;
  // Only async-signal-safe calls: the parent may have threads.
  const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(out, STDERR_FILENO);
  if (user != nullptr && (::setgroups(0, nullptr) != 0 || ::setgid(gid) != 0 || ::setuid(uid) != 0)) ::_exit(126);
  ::prctl(PR_SET_PDEATHSIG, death);  // a change of user clears it
  if (::getppid() != parent) ::_exit(1);
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

}  // namespace

PostgresServer::PostgresServer(PostgresServerOptions options)
    : options_(std::move(options)), programs_(find_programs()) {
  std::string name = (fs::temp_directory_path() / "muster-pg-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed for " + name);
  directory_ = name;
  try {
    create_cluster();
    start();
  } catch (...) {
    end(SIGQUIT);
    fs::remove_all(directory_);
    throw;
  }
}

PostgresServer::~PostgresServer() {
  end(SIGQUIT);
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
}

void PostgresServer::create_cluster() {
  if (const passwd* user = other_user(); user != nullptr) {
    if (::chown(directory_.c_str(), user->pw_uid, user->pw_gid) != 0) throw std::runtime_error("chown failed");
  }
  const auto data = directory_ / "data";
  const pid_t initdb = spawn({programs_ / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8",
                              "--locale=C", "--no-sync", "--no-instructions"},
                             directory_ / "server.log", SIGKILL);
  int status = 0;
  ::waitpid(initdb, &status, 0);
  if (status != 0) throw std::runtime_error("initdb failed: " + log_tail());
  std::ofstream(data / "postgresql.conf", std::ios::app)
      << "listen_addresses = '127.0.0.1'\nunix_socket_directories = '" << directory_.string()
      << "'\nfsync = off\nmax_connections = 30\nshared_buffers = 16MB\n"
      << options_.settings << '\n';
  std::ofstream(data / "pg_hba.conf") << options_.hba << "\nlocal all all trust\nhost all all 127.0.0.1/32 trust\n";
}

void PostgresServer::start() {
  for (int i = 0; i < kLaunches; ++i) {
    if (pid_ < 0 && launch()) return;
    std::this_thread::sleep_for(kPause);
  }
  throw std::runtime_error("postgres does not start: " + log_tail());
}

void PostgresServer::stop() {
  end(SIGINT);
}
void PostgresServer::kill() {
  end(SIGKILL);
}
void PostgresServer::pause() {
  ::kill(pid_, SIGSTOP);
}
void PostgresServer::resume() {
  ::kill(pid_, SIGCONT);
}

std::string PostgresServer::dsn(const std::string& database) const {
  return "host=127.0.0.1 port=" + std::to_string(port_) + " user=postgres dbname=" + database;
}

/// False when the server ended before it took connections.
bool PostgresServer::launch() {
  if (!has_run_) port_ = free_port();
  pid_ = spawn({programs_ / "postgres", "-D", directory_ / "data", "-p", std::to_string(port_)},
               directory_ / "server.log", SIGQUIT);
  const auto deadline = std::chrono::steady_clock::now() + kAnswersWithin;
  while (!ready()) {
    if (::waitpid(pid_, nullptr, WNOHANG) == pid_) {
      pid_ = -1;
      return false;
    }
    if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("postgres hangs: " + log_tail());
    std::this_thread::sleep_for(kRound);
  }
  has_run_ = true;
  return true;
}

/// The server keeps its state in this file.
bool PostgresServer::ready() const {
  std::ifstream file(directory_ / "data" / "postmaster.pid");
  std::string line, first;
  std::getline(file, first);
  for (int i = 1; i < kStatusLine; ++i) std::getline(file, line);
  return file && first == std::to_string(pid_) && line.starts_with("ready");
}

std::string PostgresServer::log_tail() const {
  const std::string log = slurp(directory_ / "server.log");
  constexpr std::size_t kTail = 2000;
  return log.size() > kTail ? log.substr(log.size() - kTail) : log;
}

void PostgresServer::end(int signal) {
  if (pid_ < 0) return;
  ::kill(pid_, SIGCONT);  // a paused one would not hear it
  ::kill(pid_, signal);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

}  // namespace muster::test
