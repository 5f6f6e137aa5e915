#!/usr/bin/env node
import { runAdmin } from './run.ts'

const { exitCode, stdout, stderr } = await runAdmin(process.argv.slice(2), process.env)
process.stdout.write(stdout)
process.stderr.write(stderr)
process.exitCode = exitCode
