#include "support/nats_server.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/fleet_client.h"

// A connection of the C client that ends within a large message leaks the part that it has read.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
  return "leak:natsBuf_Create\n";
}

namespace muster::test {
namespace {

constexpr int kStarts = 20;  // a port that was free a moment ago can be taken by an outgoing connection
// A server looks for 5 s whether it is ready, and then does not write the file of its ports any more.
constexpr std::chrono::seconds kReady{7}, kReadyAtLast{30};
constexpr std::chrono::milliseconds kLook{5};

std::string find_server() {
  std::string places = "/usr/sbin:/usr/bin:/usr/local/bin";
  if (const char* path = std::getenv("PATH")) places = std::string(path) + ':' + places;
  std::istringstream list(places);
  for (std::string place; std::getline(list, place, ':');) {
    const std::string file = place + "/nats-server";
    if (::access(file.c_str(), X_OK) == 0) return file;
  }
  throw std::runtime_error("no nats-server in " + places);
}

}  // namespace

std::uint16_t free_port() {
  constexpr int kFirst = 10'000, kLast = 32'000;
  std::random_device random;
  std::uniform_int_distribution<int> ports(kFirst, kLast);
  for (int tries = 0; tries < 1000; ++tries) {
    const int port = ports(random);
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    const bool taken = ::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0;
    ::close(listener);
    if (!taken) return static_cast<std::uint16_t>(port);
  }
  throw std::runtime_error("no free port");
}

NatsServer::NatsServer(NatsServerOptions options) : options_(std::move(options)) {
  std::string name = (std::filesystem::temp_directory_path() / "muster-nats-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed for " + name);
  directory_ = name;
  try {
    start();
  } catch (...) {
    std::filesystem::remove_all(directory_);
    throw;
  }
}

NatsServer::~NatsServer() {
  kill();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

void NatsServer::start() {
  write_config();
  for (int i = 0; i < kStarts; ++i) {
    if (launch(i == 0 ? kReady : kReadyAtLast)) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  throw std::runtime_error("nats-server does not start: " + log_tail());
}

void NatsServer::stop() {
  end(SIGTERM);
}
void NatsServer::kill() {
  end(SIGKILL);
}

void NatsServer::pause() {
  ::kill(pid_, SIGSTOP);
  ::waitpid(pid_, nullptr, WUNTRACED);  // until it has stopped indeed
}

void NatsServer::resume() {
  ::kill(pid_, SIGCONT);
}

void NatsServer::reload() {
  write_config();
  ::kill(pid_, SIGHUP);
}

void NatsServer::lame_duck() {
  end(SIGUSR2);
}

std::string NatsServer::url() const {
  const std::string login = options_.user.empty() ? "" : options_.user + ':' + options_.password + '@';
  return "nats://" + login + "127.0.0.1:" + std::to_string(port_);
}

void NatsServer::write_config() const {
  std::ofstream file(directory_ / "nats.conf");
  file << options_.config << '\n';
  if (!options_.user.empty()) {
    file << "authorization { user: \"" << options_.user << "\", password: \"" << options_.password << "\" }\n";
  }
  if (options_.jetstream) file << "jetstream { store_dir: \"" << (directory_ / "jetstream").string() << "\" }\n";
}

/// False when the server ended before it took connections, or did not tell its port in time and was ended.
bool NatsServer::launch(std::chrono::seconds patience) {
  const std::string dir = directory_.string();
  std::vector<std::string> words{
      find_server(),      "-c", dir + "/nats.conf", "-a", "127.0.0.1", "-p", port_ == 0 ? "-1" : std::to_string(port_),
      "--ports_file_dir", dir};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const std::string log = dir + "/server.log";
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("fork failed");
  if (pid_ == 0) {  // only async-signal-safe calls: the parent may have threads
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!read_port()) {
    if (::waitpid(pid_, nullptr, WNOHANG) == pid_) {
      pid_ = -1;
      return false;
    }
    if (std::chrono::steady_clock::now() > deadline) {
      end(SIGKILL);
      return false;
    }
    std::this_thread::sleep_for(kLook);
  }
  return true;
}

/// The server writes this file when it takes connections.
bool NatsServer::read_port() {
  const std::string text = slurp(directory_ / ("nats-server_" + std::to_string(pid_) + ".ports"));
  constexpr std::string_view kBefore = "://127.0.0.1:";  // nats or tls; of clients first, then of routes
  const std::size_t start = text.find(kBefore);
  if (start == std::string::npos) return false;
  const std::size_t end = text.find('"', start);
  if (end == std::string::npos) return false;
  port_ = static_cast<std::uint16_t>(std::stoi(text.substr(start + kBefore.size(), end)));
  return true;
}

std::string NatsServer::log_tail() const {
  const std::string log = slurp(directory_ / "server.log");
  constexpr std::size_t kTail = 2000;
  return log.size() > kTail ? log.substr(log.size() - kTail) : log;
}

void NatsServer::end(int signal) {
  if (pid_ < 0) return;
  ::kill(pid_, signal);
  if (signal == SIGTERM) ::kill(pid_, SIGCONT);  // a paused one would not hear it
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

}  // namespace muster::test
