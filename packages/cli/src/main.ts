#!/usr/bin/env node
import { elsewhere } from './commands.ts'
import { forward } from './forward.ts'
import { run } from './run.ts'
import { systemIo } from './system-io.ts'

// A reader that closes the pipe (`purser listen | head`) ends the program without an error.
process.stdout.on('error', () => process.exit())

const args = process.argv.slice(2)
const forwarded = Object.hasOwn(elsewhere, args[0] ?? '') ? forward(args) : undefined
if (forwarded === undefined) {
  const { exitCode, stdout, stderr } = await run(args, systemIo())
  process.stdout.write(stdout)
  process.stderr.write(stderr)
  process.exitCode = exitCode
} else {
  process.exitCode = forwarded
}
