#include "runtime/loader_finder.h"

#include <atomic>

namespace headrace::runtime {

namespace {

std::atomic<LoaderFinder> loader_finder = nullptr;

}  // namespace

void set_loader_finder(LoaderFinder finder) { loader_finder = finder; }

void find_loader(const std::string& key) {
  if (const LoaderFinder finder = loader_finder) finder(key);
}

}  // namespace headrace::runtime
