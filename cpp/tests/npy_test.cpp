#include "npy/npy.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "npy/header.h"
#include "support/temporary_file.h"

namespace timetrial {
namespace {

using test::TemporaryFile;
using Extents = std::vector<std::int64_t>;

// What NumPy 1.26 writes for numpy.arange(6, dtype="<f4").reshape(2, 3).
std::string numpy_file() {
    std::string file("\x93NUMPY\x01\x00\x76\x00", 10);
    file += "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
    file.append(127 - file.size(), ' ');
    file += '\n';
    for (const float value : {0.f, 1.f, 2.f, 3.f, 4.f, 5.f})
        file.append(reinterpret_cast<const char*>(&value), sizeof value);
    return file;
}

// The words of the error that reading that content gives.
std::string refusal(const std::string& content) {
    const TemporaryFile file(content);
    try {
        const NpyArray array(file.path());
    } catch (const NpyError& error) {
        EXPECT_EQ(std::string(error.what()).find(file.path()), 0u) << error.what();
        return error.what();
    }
    return "no error";
}

std::string with(std::string text, const std::string& from, const std::string& to) {
    return text.replace(text.find(from), from.size(), to);
}

#define EXPECT_WORDS(text, words) EXPECT_NE((text).find(words), std::string::npos) << (text)

TEST(Npy, ReadsWhatNumpyWrites) {
    const TemporaryFile file(numpy_file());
    const NpyArray array(file.path());
    EXPECT_EQ(array.dtype(), TT_F32);
    EXPECT_EQ(array.shape(), (Extents{2, 3}));
    EXPECT_EQ(array.elements(), 6u);
    EXPECT_EQ(array.row_bytes(), 12u);
    EXPECT_EQ(std::vector<float>(array.f32(), array.f32() + 6), (std::vector<float>{0, 1, 2, 3, 4, 5}));
}

TEST(Npy, WritesWhatNumpyWrites) {
    const TemporaryFile file;
    const std::vector<float> values{0, 1, 2, 3, 4, 5};
    write_npy(file.path(), TT_F32, {2, 3}, values.data());
    EXPECT_EQ(file.content(), numpy_file());
}

TEST(Npy, ReadsBackEveryTypeAndRank) {
    const TemporaryFile file;
    const std::vector<std::int64_t> whole{-1, 2, 1LL << 40};
    for (const Extents& shape : {Extents{3}, Extents{3, 1}, Extents{1, 3, 1, 1}}) {
        write_npy(file.path(), TT_I64, shape, whole.data());
        const NpyArray array(file.path());
        EXPECT_EQ(array.shape(), shape);
        EXPECT_EQ(std::vector<std::int64_t>(array.i64(), array.i64() + 3), whole);
    }
    const double number = 0.1;
    write_npy(file.path(), TT_F64, {}, &number);
    NpyArray scalar(file.path());
    const NpyArray moved(std::move(scalar));
    EXPECT_EQ(moved.elements(), 1u);
    EXPECT_EQ(*static_cast<const double*>(moved.data()), 0.1);
    write_npy(file.path(), TT_F32, {0, 5}, nullptr);
    EXPECT_EQ(NpyArray(file.path()).elements(), 0u);
}

TEST(Npy, SaysWhatIsWrongWithAFile) {
    const std::string good = numpy_file();
    EXPECT_WORDS(refusal(""), "not a .npy file");
    EXPECT_WORDS(refusal("PK\x03\x04 a zip file"), "not a .npy file");
    EXPECT_WORDS(refusal(good.substr(0, 60)), "truncated: the header");
    EXPECT_WORDS(refusal(good.substr(0, good.size() - 1)),
                 "truncated: 23 bytes of data; shape (2, 3) of f32 needs 24");
    EXPECT_WORDS(refusal(good + "x"), "too long: 25 bytes");
    EXPECT_WORDS(refusal(with(good, "<f4", "<f2")), "dtype '<f2'");
    EXPECT_WORDS(refusal(with(good, "<f4", ">f4")), "dtype '>f4'");
    EXPECT_WORDS(refusal(with(good, "False", "True ")), "Fortran");
    EXPECT_WORDS(refusal(with(good, "shape", "shade")), "not that of a plain array");
    EXPECT_WORDS(refusal(with(good, "(2, 3)", "(2,-3)")), "not that of a plain array");
    EXPECT_WORDS(refusal(with(good, "'<f4'", "[   ]")), "not that of a plain array");
    EXPECT_WORDS(refusal(with(good, "(2, 3), }        ", "(9999999999999,)}")), "truncated");
    EXPECT_WORDS(refusal(with(good, "(2, 3), }                ", "(4611686018427387904,9), }")), "too large");
    std::string later = good;
    later[6] = '\x04';
    EXPECT_WORDS(refusal(later), "version 4");
    EXPECT_THROW(NpyArray("/nowhere/x.npy"), NpyError);
    EXPECT_THROW(NpyArray("/tmp"), NpyError);
}

TEST(Npy, SaysWhatIsWrongWithAnArray) {
    const TemporaryFile file(numpy_file());
    const NpyArray array(file.path());
    EXPECT_THROW(array.i64(), NpyError);
    EXPECT_NO_THROW(array.expect_shape({2, 3}));
    try {
        array.expect_shape({3, 2});
        FAIL();
    } catch (const NpyError& error) {
        EXPECT_WORDS(std::string(error.what()), "shape (2, 3); expected (3, 2)");
    }
}

TEST(Npy, SaysWhenAFileCannotBeWritten) {
    const float value = 1;
    EXPECT_THROW(write_npy("/nowhere/x.npy", TT_F32, {1}, &value), NpyError);
    // A disk that is full after 100 bytes.
    const std::string path = std::filesystem::temp_directory_path() / "timetrial-full.npy";
    const auto before = std::signal(SIGXFSZ, SIG_IGN);
    rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    const rlimit small{100, limit.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    EXPECT_THROW(write_npy(path, TT_F32, {1}, &value), NpyError);
    setrlimit(RLIMIT_FSIZE, &limit);
    std::signal(SIGXFSZ, before);
    EXPECT_FALSE(std::filesystem::exists(path)) << "a part of a file is left";
}

TEST(NpyHeader, ParsesOnlyTheOneForm) {
    EXPECT_TRUE(parse_npy_header("{'shape': (), \"descr\": '<i8', 'fortran_order': True}\n"));
    for (const char* text :
         {"", "{", "{}", "{'descr': '<f4'}", "{'descr': '<f4', 'fortran_order': 0, 'shape': ()}",
          "{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}",
          "{'descr': '<f4', 'fortran_order': False, 'shape': ()} more"})
        EXPECT_FALSE(parse_npy_header(text)) << text;
}

}  // namespace
}  // namespace timetrial
