/**
 * Measures `npm ci && npm start` to the first payment in a clean clone of the committed state: the shop and the agent of the README, as they
 * stand on the page. Run it on a quiet machine. `--cold` begins with an empty cache of npm, as a newcomer does. Ends with 1 above 90 seconds.
 */

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import { findFreePort } from './src/free-port.ts'

const run = promisify(execFile)
const secondsMax = 90
/** The longest wait for one thing. */
const waitMsMax = 600_000
const root = path.resolve(import.meta.dirname, '../..')
const folder = mkdtempSync(path.join(os.tmpdir(), 'purser-first-payment-'))
const clone = path.join(folder, 'purser')
const cold = process.argv.includes('--cold') ? { npm_config_cache: path.join(folder, 'cache') } : {}
const env = { ...process.env, ...cold }
const children: ChildProcess[] = []
let last = performance.now()
let total = 0

/** Prints how long a step took, and counts it. */
function step(name: string): void {
  const seconds = (performance.now() - last) / 1_000
  total += seconds
  last = performance.now()
  console.log(`${name.padEnd(28)} ${seconds.toFixed(1).padStart(6)} s`)
}

/** Starts a program in the clone. It ends when this one does. */
function start(command: string, args: readonly string[], more: NodeJS.ProcessEnv = {}): ChildProcess {
  const child = spawn(command, args, { cwd: clone, env: { ...env, ...more }, stdio: ['ignore', 'ignore', 'inherit'] })
  children.push(child)
  return child
}

/** Waits until a condition holds. Fails if a started program has failed, or after `waitMsMax`. */
async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  const end = performance.now() + waitMsMax
  while (!(await isTrue())) {
    const failed = children.find(({ exitCode }) => exitCode !== null && exitCode !== 0)
    if (failed !== undefined) throw new Error(`${failed.spawnargs.join(' ')} ended with ${failed.exitCode}`)
    if (performance.now() > end) throw new Error(`nothing came within ${waitMsMax / 1_000} s`)
    await wait(100)
  }
}

function blockOf(text: string): string {
  const blocks = [...readFileSync(path.join(clone, 'README.md'), 'utf8').matchAll(/^```js\n([\s\S]*?)^```$/gm)]
  const found = blocks.map(([, code = '']) => code).find((code) => code.includes(text))
  if (found === undefined) throw new Error(`README.md has no block with ${text}`)
  return found
}

async function measure(): Promise<void> {
  await run('git', ['clone', '-q', '--no-hardlinks', root, clone])
  const [servicePort, port] = [await findFreePort(0), await findFreePort(0)]
  last = performance.now()
  const [code] = await once(start('npm', ['ci', '--no-audit', '--no-fund']), 'exit')
  if (code !== 0) throw new Error(`npm ci ended with ${code}`)
  step('npm ci')
  start('npm', ['start'], { PORT: String(servicePort) })
  const file = path.join(clone, '.purser/dev.json')
  await until(() => existsSync(file))
  const dev = JSON.parse(readFileSync(file, 'utf8'))
  step('npm start')
  const own = { PURSER_BASE_URL: dev.baseUrl, PURSER_API_KEY: dev.apiKey, PAYER_KEY: dev.payer.privateKey }
  const placed = (code: string): string =>
    code
      .replaceAll('3000', String(port))
      .replaceAll('byw_…', dev.walletId)
      .replaceAll('https://pay.example.com', dev.baseUrl)
  writeFileSync(path.join(clone, 'shop.mjs'), placed(blockOf('payMiddleware')))
  writeFileSync(path.join(clone, 'agent.mjs'), placed(blockOf('wrapFetchWithPayment')))
  start(process.execPath, ['shop.mjs'], own)
  await until(() =>
    fetch(`http://localhost:${port}/forecast`).then(
      ({ status }) => status === 402,
      () => false,
    ),
  )
  step('a shop that answers 402')
  const { stdout } = await run(process.execPath, ['agent.mjs'], { cwd: clone, env: { ...env, ...own } })
  if (!stdout.startsWith('200 ')) throw new Error(`the agent printed ${stdout}`)
  step('the first payment')
}

try {
  console.log(
    `${os.cpus().length} cores, load ${os.loadavg()[0]?.toFixed(1)}, ${cold.npm_config_cache === undefined ? 'warm' : 'cold'} npm cache`,
  )
  await measure()
  console.log(`${'together'.padEnd(28)} ${total.toFixed(1).padStart(6)} s (at most ${secondsMax})`)
  process.exitCode = total > secondsMax ? 1 : 0
} finally {
  for (const child of children.reverse()) {
    child.kill()
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
  rmSync(folder, { recursive: true, force: true })
}
