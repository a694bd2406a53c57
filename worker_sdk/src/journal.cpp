#include "journal.h"

#include <fcntl.h>
#include <spdlog/logger.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "muster/properties.h"
#include "schema/subjects.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

// The largest result of a mutation: 256 KiB of properties, three ids of 16 KiB, and what names the job.
constexpr std::size_t kReservedBytes = 320 * 1024;
constexpr std::array<char, 8> kMagic = {'M', 'U', 'S', 'T', 'E', 'R', 'J', '1'};
constexpr std::string_view kSuffix = ".result";  // a token has no dot: none is called `lock`
constexpr int kOpenTries = 8;

/// What stands before a result; read on the machine that wrote it.
struct Head {
  std::array<char, 8> magic = kMagic;
  std::uint64_t length = 0;
  XXH128_hash_t checksum{};
};
static_assert(sizeof(Head) == 32);

Error error_at(const fs::path& path, int number = errno) {
  return from_errno(number, path.string());
}

/// mkdir -p; only the owner can look into what it makes.
Result<void> make_directories(const fs::path& path) {
  fs::path so_far;
  for (const fs::path& part : path) {
    so_far /= part;
    if (::mkdir(so_far.c_str(), 0700) == 0) continue;
    const int number = errno;  // of no matter where it is there
    std::error_code error;
    if (!fs::is_directory(so_far, error)) return error_at(so_far, number);
  }
  return {};
}

bool lock(const File& file) {
  return ::flock(file.get(), LOCK_EX | LOCK_NB) == 0;
}

/// Whether `file` is what stands at `path`: who held the lock before may have removed both.
bool is_at(const File& file, const fs::path& path) {
  struct stat here {
  }, there{};
  return ::fstat(file.get(), &here) == 0 && ::lstat(path.c_str(), &there) == 0 && here.st_ino == there.st_ino &&
         here.st_dev == there.st_dev;
}

/// Makes a directory and locks it. Another worker may take it for a dead one's before that: then again.
Result<File> make_locked(const fs::path& directory) {
  const fs::path path = directory / "lock";
  for (int i = 0; i < kOpenTries; ++i) {
    if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) return error_at(directory);
    File file(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file && errno != ENOENT) return error_at(path);
    if (file && lock(file) && is_at(file, path)) return file;
  }
  return failure(Errc::kInternalFailure, path.string() + ": locked by another process");
}

/// errno, or 0.
int write_all(const File& file, std::string_view bytes) {
  for (off_t at = 0; !bytes.empty();) {
    const ssize_t written = ::pwrite(file.get(), bytes.data(), bytes.size(), at);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(written));
    at += written;
  }
  return 0;
}

/// What is in a directory; as much as can be had of it.
std::vector<fs::path> entries_of(const fs::path& directory, std::error_code& error) {
  std::vector<fs::path> entries;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    entries.push_back(it->path());
  }
  return entries;
}

bool is_result(const fs::path& path) {
  return path.extension() == kSuffix;
}

/// The result in a file; nullopt: there is no whole one. An error says nothing of that.
Result<std::optional<Bytes>> read_result(const fs::path& path) {
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return error_at(path);
  Bytes bytes(static_cast<std::size_t>(status.st_size), '\0');
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t got = ::pread(file.get(), bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return error_at(path);
    if (got == 0) return std::optional<Bytes>();
    at += static_cast<std::size_t>(got);
  }
  Head head;
  if (bytes.size() < sizeof head) return std::optional<Bytes>();
  std::memcpy(&head, bytes.data(), sizeof head);
  bytes.erase(0, sizeof head);
  if (head.magic != kMagic || head.length > bytes.size()) return std::optional<Bytes>();
  bytes.resize(head.length);  // what was reserved may stand behind it
  if (XXH128_isEqual(XXH3_128bits(bytes.data(), bytes.size()), head.checksum) == 0) return std::optional<Bytes>();
  return std::optional<Bytes>(std::move(bytes));
}

}  // namespace

File::File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

File& File::operator=(File&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<std::unique_ptr<FileJournal>> FileJournal::open(fs::path pool, const WorkerId& worker,
                                                       std::shared_ptr<spdlog::logger> log) {
  if (auto made = make_directories(pool); !made) return made.error();
  fs::path own = pool / worker.value;
  auto locked = make_locked(own);
  if (!locked) return locked.error();
  return std::unique_ptr<FileJournal>(
      new FileJournal(std::move(pool), std::move(own), std::move(*locked), std::move(log)));
}

FileJournal::FileJournal(fs::path pool, fs::path own, File lock, std::shared_ptr<spdlog::logger> log)
    : pool_(std::move(pool)), own_(std::move(own)), lock_(std::move(lock)), log_(std::move(log)) {
  std::error_code error;
  left_ = entries_of(own_, error);
  std::erase_if(left_, [](const fs::path& path) { return !is_result(path); });
}

FileJournal::~FileJournal() {
  std::error_code error;
  const auto entries = entries_of(own_, error);
  if (error || std::any_of(entries.begin(), entries.end(), is_result)) return;  // whoever takes it over removes it
  ::unlink((own_ / "lock").c_str());
  ::rmdir(own_.c_str());
}

fs::path FileJournal::path_of(const Token& token) const {
  return own_ / (token.value + std::string(kSuffix));
}

Result<void> FileJournal::begin(const Token& token) {
  if (!valid_token(token.value) || token.value.find('/') != std::string::npos) {
    return invalid_request("a token that is no name of a file");
  }
  const fs::path path = path_of(token);
  File file(::open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return error_at(path);
  if (const int number = ::posix_fallocate(file.get(), 0, kReservedBytes); number != 0) {
    ::unlink(path.c_str());
    return error_at(path, number);
  }
  const std::lock_guard guard(mutex_);
  begun_[token] = std::move(file);
  return {};
}

Result<void> FileJournal::finish(const Token& token, const Bytes& reply) {
  File file;
  {
    const std::lock_guard guard(mutex_);
    if (auto begun = begun_.extract(token)) file = std::move(begun.mapped());
  }
  if (!file) return failure(Errc::kInternalFailure, "a result of what was not begun");
  Head head;
  head.length = reply.size();
  head.checksum = XXH3_128bits(reply.data(), reply.size());
  Bytes bytes(sizeof head, '\0');
  std::memcpy(bytes.data(), &head, sizeof head);
  bytes += reply;
  const int number = write_all(file, bytes);
  if (number != 0) return error_at(path_of(token), number);
  // Not synced: what is written outlives the process, as what the store of a coordinator commits does. A sync would
  // cost more than most changes.
  if (::ftruncate(file.get(), static_cast<off_t>(bytes.size())) != 0) return error_at(path_of(token));
  return {};
}

void FileJournal::remove(const Token& token) {
  {
    const std::lock_guard guard(mutex_);
    begun_.erase(token);
  }
  const fs::path path = path_of(token);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) log_->warn("cannot remove {}", error_at(path).message);
}

std::vector<Journal::Kept> FileJournal::take_over(Room room, const Wanted& wanted) {
  std::vector<Kept> kept;
  std::erase_if(left_, [&](const fs::path& path) { return take(path, wanted, room, kept); });
  std::error_code error;
  for (const fs::path& other : entries_of(pool_, error)) {
    if (other == own_) continue;
    const fs::path path = other / "lock";
    const File file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (!file) {
      if (errno == ENOENT) ::rmdir(other.c_str());  // died before it locked it; with anything in it, it stays
      continue;
    }
    if (!lock(file) || !is_at(file, path)) continue;  // its owner lives
    if (!empty_out(other, wanted, room, kept)) continue;
    ::unlink(path.c_str());  // under the lock: who has opened it meanwhile sees that it is gone
    ::rmdir(other.c_str());
  }
  return kept;
}

bool FileJournal::empty_out(const fs::path& dead, const Wanted& wanted, Room& room, std::vector<Kept>& kept) {
  std::error_code error;
  const auto entries = entries_of(dead, error);
  bool emptied = !error;
  for (const fs::path& path : entries) emptied = (!is_result(path) || take(path, wanted, room, kept)) && emptied;
  return emptied;
}

bool FileJournal::take(const fs::path& path, const Wanted& wanted, Room& room, std::vector<Kept>& kept) {
  if (room.results == 0) return false;
  const std::string worker = path.parent_path().filename().string();
  const Token token(path.stem().string());
  auto read = read_result(path);
  if (!read) {
    log_->warn("cannot take over the result of a worker that has died: {}", read.error().message);
    return false;
  }
  if (!*read) {
    log_->warn("token={} worker={} died before this change had a result: the fleet finds out what came of it",
               token.value, worker);
    ::unlink(path.c_str());
    return true;
  }
  if ((*read)->size() > room.bytes || !wanted(**read)) return false;
  if (::rename(path.c_str(), path_of(token).c_str()) != 0) {
    log_->warn("cannot take over the result of a worker that has died: {}", error_at(path).message);
    return false;
  }
  log_->info("token={} worker={} has died: its result is taken over", token.value, worker);
  --room.results;
  room.bytes -= (*read)->size();
  kept.push_back({token, std::move(**read)});
  return true;
}

}  // namespace muster
