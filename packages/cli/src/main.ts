#!/usr/bin/env node
import { spawnSync } from 'node:child_process'
import { elsewhere } from './commands.ts'
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

/**
 * Runs the program that has these commands: `purser-dev` for those on a local deployment, `purser-admin` for those on the database. Returns its
 * exit code, or undefined if it is not installed.
 */
function forward(args: readonly string[]): number | undefined {
  const { status, error } = spawnSync(args[0] === 'dev' ? 'purser-dev' : 'purser-admin', args, { stdio: 'inherit' })
  return error === undefined ? (status ?? 1) : undefined
}
