// latchctl: shows what the daemons of a share hold.
#include <clocale>
#include <iostream>
#include <string>
#include <vector>

#include "latchfs/cli/run.hpp"

int main(int argc, char** argv) {
  std::setlocale(LC_CTYPE, "");  // tables are laid out by the width of characters
  return latchfs::cli::run(std::vector<std::string>(argv + 1, argv + argc), std::cout, std::cerr);
}
