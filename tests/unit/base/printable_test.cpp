#include "latchfs/base/printable.hpp"

#include <doctest/doctest.h>

using namespace latchfs;

TEST_CASE("text that is fit to be seen stays as it is") {
  for (const char* text : {"", "plain text, 'quoted' \\ back", "Grüße, 世界 \xf0\x9f\x94\x92", "\xc2\xa0"})
    CHECK(printable(text) == text);
}

TEST_CASE("control characters are escaped, in one byte or two") {
  CHECK(printable("a\nb\tc\r\x7f") == "a\\x0ab\\x09c\\x0d\\x7f");
  CHECK(printable("\x1b[31mred") == "\\x1b[31mred");
  CHECK(printable(std::string_view("\0x", 2)) == "\\x00x");
  CHECK(printable("\xc2\x9b 31m") == "\\xc2\\x9b 31m");
}

TEST_CASE("bytes that are no UTF-8 are escaped one by one") {
  CHECK(printable("a\xff") == "a\\xff");
  CHECK(printable("\xc3") == "\\xc3");
  CHECK(printable("\xc3(") == "\\xc3(");
  CHECK(printable("\xc0\xaf") == "\\xc0\\xaf");                    // too long for '/'
  CHECK(printable("\xe0\x80\xaf") == "\\xe0\\x80\\xaf");           // too long
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");           // a surrogate
  CHECK(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");  // above U+10FFFF
}
