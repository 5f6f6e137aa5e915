#!/usr/bin/env node
import { elsewhere } from './commands.ts'
import { forwardToServer } from './forward.ts'
import { thisMachine } from './outside.ts'
import { run } from './run.ts'

// Whoever reads along and has enough (`purser listen | head`) ends the program; that is no fault.
process.stdout.on('error', () => process.exit())

const args = process.argv.slice(2)
const forwarded = Object.hasOwn(elsewhere, args[0] ?? '') ? forwardToServer(args) : undefined
if (forwarded === undefined) {
  const { exitCode, stdout, stderr } = await run(args, thisMachine())
  process.stdout.write(stdout)
  process.stderr.write(stderr)
  process.exitCode = exitCode
} else {
  process.exitCode = forwarded
}
