import { spawn } from 'node:child_process'

/** The slowest begins first. */
const checks = ['types', 'lint', 'imports', 'exports', 'openapi', 'errors', 'events', 'licences']

/** Runs one check. Prints its output when it ends, so that those of two checks do not mix. Returns whether it passed. */
function check(name: string): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn('npm', ['run', '--silent', `check:${name}`], { stdio: ['ignore', 'pipe', 'pipe'] })
    const output: Buffer[] = []
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => output.push(chunk))
    child.on('error', (error) => output.push(Buffer.from(`${error.message}\n`)))
    child.on('close', (code) => {
      console.log(`check:${name} ${code === 0 ? 'passed' : 'failed'}`)
      process.stdout.write(Buffer.concat(output))
      resolve(code === 0)
    })
  })
}

const failed: string[] = []

/** Runs checks until none is left. */
async function work(): Promise<void> {
  for (let name = checks.shift(); name !== undefined; name = checks.shift()) if (!(await check(name))) failed.push(name)
}

// Most of them use one core, and CI has two.
await Promise.all([work(), work()])
if (failed.length > 0) {
  console.error(`failed: ${failed.map((name) => `check:${name}`).join(', ')}`)
  process.exitCode = 1
}
