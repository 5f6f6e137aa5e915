#!/usr/bin/env node
import { runDev } from './dev-program.ts'

const { exitCode, stdout, stderr } = await runDev(process.argv.slice(2), process.env)
process.stdout.write(stdout)
process.stderr.write(stderr)
process.exitCode = exitCode
