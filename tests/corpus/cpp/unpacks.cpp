// A program that carries another one behind its own bytes, unpacks that into a temporary directory and runs it.
// One-file programs of PyInstaller do the same. The last 8 bytes of the file are the length of what it carries.
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int main() {
    std::ifstream self("/proc/self/exe", std::ios::binary);
    std::uint64_t length = 0;
    self.seekg(-8, std::ios::end);
    self.read(reinterpret_cast<char*>(&length), 8);
    self.seekg(-8 - static_cast<std::int64_t>(length), std::ios::end);
    std::string content(length, '\0');
    self.read(&content[0], static_cast<std::streamsize>(length));

    const char* folder = std::getenv("TMPDIR");
    std::string unpacked = std::string(folder ? folder : "/tmp") + "/_MEIXXXXXX";
    if (mkdtemp(&unpacked[0]) == nullptr) return perror(unpacked.c_str()), EXIT_FAILURE;
    std::string program = unpacked + "/bot";
    std::ofstream(program, std::ios::binary) << content;
    chmod(program.c_str(), 0700);

    pid_t child = fork();
    if (child == 0) {
        execl(program.c_str(), program.c_str(), nullptr);
        perror(program.c_str());
        _exit(EXIT_FAILURE);
    }
    int status = 0;
    waitpid(child, &status, 0);
    unlink(program.c_str());
    rmdir(unpacked.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}
