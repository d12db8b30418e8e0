// SPDX-License-Identifier: Apache-2.0
#include "daemon/ctl_table.h"

#include <gtest/gtest.h>

namespace popgate {
namespace {

TEST(CtlTable, columns_are_as_wide_as_their_widest_cell_and_numbers_stand_right) {
  CtlTable table({{"NAME"}, {"HITS", true}, {"NOTE"}});
  table.add({"a", "12345", "x"});
  table.add({"longer", "1", ""});
  EXPECT_EQ(table.text(),
            "NAME     HITS  NOTE\n"
            "a       12345  x\n"
            "longer      1\n");
}

TEST(CtlTable, letters_of_several_bytes_are_one_wide) {
  CtlTable table({{"N"}, {"M"}});
  table.add({"\xc3\xa9\xc3\xa9", "x"});
  table.add({"ab", "y"});
  EXPECT_EQ(table.text("  "), "  N   M\n  \xc3\xa9\xc3\xa9  x\n  ab  y\n");
}

TEST(CtlTable, row_of_another_length_is_a_bug) {
  CtlTable table({{"N"}, {"M"}});
  EXPECT_DEATH(table.add({"x"}), "assertion failed");
}

}  // namespace
}  // namespace popgate
