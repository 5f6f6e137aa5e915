/** The programs of the README and of the guides, run as they stand on the page against the service that `npm start` starts. */

import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { Dev } from '../src/dev.ts'
import { findFreePort } from '../src/free-port.ts'
import { startTemporaryDev } from '../src/temporary-dev.ts'

const run = promisify(execFile)
const root = path.resolve(import.meta.dirname, '../../..')

let dev: Dev
/** Where a reader would save the programs. It finds the packages of the workspace. */
let folder: string
let port: number
/** A payment that a program refunds. */
let paymentId = ''
const running: ChildProcess[] = []

beforeAll(async () => {
  dev = await startTemporaryDev()
  port = await findFreePort(0)
  folder = mkdtempSync(path.join(tmpdir(), 'purser-guides-'))
  symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'))
  // mppx is not among the packages of the root.
  mkdirSync(path.join(folder, 'mpp/node_modules'), { recursive: true })
  symlinkSync(path.join(root, 'packages/sdk/node_modules/mppx'), path.join(folder, 'mpp/node_modules/mppx'))
  writeFileSync(path.join(folder, 'package.json'), '{"type":"module"}')
  mkdirSync(path.join(folder, '.purser'))
  const { apiKey, baseUrl, walletId, payer } = dev
  writeFileSync(path.join(folder, '.purser/dev.json'), JSON.stringify({ apiKey, baseUrl, walletId, payer }))
  writeFileSync(path.join(folder, 'measurements.csv'), 'day;mm\n1;0\n')
})
/** A test that failed leaves its server. */
afterEach(() => {
  for (const child of running.splice(0)) child.kill()
})
afterAll(async () => {
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
  await dev?.stop()
})

/** The block of a page that contains this text, with the addresses of this test. */
function block(page: string, text: string): string {
  const blocks = [...readFileSync(path.join(root, page), 'utf8').matchAll(/^```(?:js|ts|python)\n([\s\S]*?)^```$/gm)]
  const found = blocks.map(([, code = '']) => code).find((code) => code.includes(text))
  if (found === undefined) throw new Error(`${page} has no block with ${text}`)
  return found
    .replaceAll('localhost:3000', `localhost:${port}`)
    .replaceAll('listen(3000,', `listen(${port},`)
    .replaceAll('port: 3000', `port: ${port}`)
    .replaceAll('https://pay.example.com', dev.baseUrl)
    .replaceAll('byw_…', dev.walletId)
    .replaceAll('pay_…', paymentId)
}

function env(more: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const own = { PURSER_BASE_URL: dev.baseUrl, PURSER_API_KEY: dev.apiKey, PAYER_KEY: dev.payer.privateKey }
  return { ...process.env, ...own, ...more }
}

async function program(name: string, code: string): Promise<string> {
  writeFileSync(path.join(folder, name), code)
  const { stdout } = await run(process.execPath, [name], { cwd: folder, env: env() })
  return stdout
}

/** Starts a server, and waits until it answers at the port of this test. */
async function server(name: string, code: string, more: Readonly<Record<string, string>> = {}): Promise<ChildProcess> {
  writeFileSync(path.join(folder, name), code)
  const child = spawn(process.execPath, [name], { cwd: folder, env: env(more), stdio: ['ignore', 'pipe', 'inherit'] })
  running.push(child)
  await expect
    .poll(() =>
      fetch(`http://localhost:${port}/`).then(
        () => true,
        () => false,
      ),
    )
    .toBe(true)
  return child
}

async function end(child: ChildProcess): Promise<void> {
  child.kill()
  await once(child, 'exit')
}

test('the shop and the agent of the README', async () => {
  const shop = await server('shop.mjs', block('README.md', 'payMiddleware'))
  expect((await fetch(`http://localhost:${port}/forecast`)).status).toBe(402)
  const printed = await program('agent.mjs', block('README.md', 'wrapFetchWithPayment'))
  expect(printed).toMatch(/^200 \{ sky: 'clear', paidBy: '0x[0-9a-fA-F]{40}' \} \{\s+success: true/)
  await end(shop)
})

test('the shop and the agent of the quick start, and the agent with a managed wallet of the guide to policies', async () => {
  const shop = await server('shop.mjs', block('docs/quick-start.md', 'payMiddleware'))
  const stub = { 'x-payment': 'stub_payment_accepted' }
  expect((await fetch(`http://localhost:${port}/forecast`, { headers: stub })).status).toBe(200)
  const printed = await program('agent.mjs', block('docs/quick-start.md', 'createPayingFetch'))
  expect(printed).toMatch(/^200 0x[0-9a-f]{64}\nsettled\n$/)
  const setup = block('docs/policies.md', 'policy.set').replace("import { createPurser } from '@purser/sdk'", '')
  const agent = block('docs/policies.md', 'async function buy').replace('apiKey: agentKey', 'apiKey: agentKey.key')
  const before =
    "const { PURSER_API_KEY: apiKey = '', PURSER_BASE_URL: baseUrl = '' } = process.env\nconst walletId = (await made()).id"
  const made = `async function made() {\n${setup}\nObject.assign(globalThis, { agentKey })\nawait settled(purser, wallet.id)\nreturn wallet\n}`
  const settled =
    'async function settled(purser, id) {\nfor (;;) {\nconst balances = await purser.wallets.master.balances(id)\nif (balances.some(({ rawBalance }) => rawBalance !== "0")) return\nawait setTimeout(100)\n}\n}'
  const bought = `console.log((await buy('http://localhost:${port}/forecast')).status)`
  expect(await program('buyer.ts', [before, made, settled, agent, bought].join('\n'))).toBe('200\n')
  await end(shop)
})

/** Pays for the route of this test with the agent of the README, which has the official client. */
async function payAtPort(): Promise<string> {
  return program('payer.mjs', block('README.md', 'wrapFetchWithPayment'))
}

test.each([
  ['Hono', '@hono/node-server'],
  ['Fastify', 'walletPlugin, {'],
])('the server of the guide with %s sells its route', async (_, text) => {
  const shop = await server('shop.mjs', block('docs/sdk.md', text))
  expect((await fetch(`http://localhost:${port}/forecast`)).status).toBe(402)
  expect(await payAtPort()).toMatch(/^200 \{ sky: 'clear', paymentId: 'pay_\w+' \} \{\s+success: true/)
  await end(shop)
})

test('the server of the guide describes its paid route with the offer that its 402 has', async () => {
  const shop = await server('shop.mjs', block('docs/sdk.md', 'discovery({ info'))
  const document = await (await fetch(`http://localhost:${port}/openapi.json`)).json()
  expect(document).toMatchObject({
    info: { title: 'Weather' },
    paths: {
      '/forecast': {
        get: {
          summary: 'The weather of a city',
          'x-payment-info': { offers: [expect.objectContaining({ intent: 'charge', method: 'evm', amount: '10000' })] },
        },
      },
    },
  })
  await end(shop)
})

test('the MCP server of the guide sells its tool to the agent of the guide', async () => {
  writeFileSync(path.join(folder, 'weather.mjs'), block('docs/sdk.md', 'createPaidTool({'))
  const printed = await program('buyer.mjs', block('docs/sdk.md', 'StdioClientTransport({'))
  expect(printed).toMatch(
    /text: 'Clear in Lima, paid by 0x[0-9a-fA-F]{40}'[\s\S]*success: true[\s\S]*transaction: '0x[0-9a-f]{64}'/,
  )
})

test('the route of the guide with Next is paid for', async () => {
  writeFileSync(path.join(folder, 'route.js'), block('docs/sdk.md', 'withPayment({ ...wallet'))
  const host =
    "import { serve } from '@hono/node-server'\nimport { GET } from './route.js'\n" +
    `serve({ fetch: (request) => GET(request), port: ${port}, hostname: '127.0.0.1' })`
  const shop = await server('next.mjs', host)
  expect(await payAtPort()).toMatch(/^200 \{ sky: 'clear', paymentId: 'pay_\w+' \} \{\s+success: true/)
  await end(shop)
})

test('the x402 server of the guide to the facilitator is paid, and the program of the guide to refunds gives the money back', async () => {
  const shop = await server('shop.mjs', block('docs/facilitator.md', '@x402/express'))
  expect(await payAtPort()).toMatch(/^200 \{ sky: 'clear' \} \{\s+success: true/)
  await end(shop)
  const headers = { authorization: `Bearer ${dev.apiKey}` }
  const logs = await fetch(`${dev.baseUrl}/payments/logs?limit=1`, { headers })
  ;[{ paymentId }] = (await logs.json()) as [{ paymentId: string }]
  expect(await program('refund.mjs', block('docs/refunds.md', 'test.deposits.create'))).toMatch(
    /^completed 0\.01 0x[0-9a-f]{64}\n$/,
  )
})

test('the mppx server of the guide to protocols is paid by the client of the guide', async () => {
  const secret = { MPP_SECRET_KEY: 'a secret of at least thirty-two bytes' }
  const shop = await server('mpp/shop.ts', block('docs/protocols.md', 'mppx/server'), secret)
  expect(await program('mpp/payer.mjs', block('docs/protocols.md', 'mppx/client'))).toBe('200 clear\n')
  await end(shop)
})

test('the program of the guide to wallets sees a deposit', async () => {
  expect(await program('deposits.mjs', block('docs/wallets.md', 'deposit.success'))).toMatch(
    /^12\.5 USDC 0x[0-9a-f]{64}\n$/,
  )
})

const hasPython = spawnSync('python3', ['-c', 'import sys; sys.exit(sys.version_info < (3, 9))']).status === 0

test.skipIf(!hasPython)(
  'the agent of the guide to Python pays under its caps, and above one after a person has approved',
  async () => {
    const prices =
      "for (const [path, price] of [['/cheap', '0.05'], ['/dear', '0.2'], ['/huge', '0.6']])\n  app.get(path, "
    const shop = await server(
      'shop.mjs',
      block('docs/quick-start.md', 'payMiddleware')
        .replace("app.get('/forecast', ", prices)
        .replace("price: '0.01'", 'price'),
    )
    const code = [
      block('docs/python.md', 'policy.set'),
      "agent_key, base_url, wallet_id = key['key'], os.environ['PURSER_BASE_URL'], wallet['id']",
      block('docs/python.md', 'def buy').replace('time.sleep(5)', 'time.sleep(0.5)'),
      "while not any(float(one['formattedBalance']) for one in agent.wallets.master.balances(wallet_id)):\n    time.sleep(0.2)",
      `for path in ['cheap', 'huge', 'dear']:\n    print((buy(f'http://localhost:${port}/{path}') or {}).get('status'))`,
    ]
    const approving = approveNext()
    const { stdout } = await run('python3', ['-c', code.join('\n')], {
      cwd: path.join(root, 'packages/python/src'),
      env: env({ PYTHONDONTWRITEBYTECODE: '1' }),
    })
    expect(stdout.split('\n')).toEqual([
      '200',
      expect.stringMatching(/^policy-denied .*at most 0\.50 USDC/),
      'None',
      '200',
      '',
    ])
    await approving
    await end(shop)
  },
)

/** Signs in with the link that `npm start` prints, as a browser does, and approves the first movement that waits. */
async function approveNext(): Promise<void> {
  const opened = { 'sec-fetch-dest': 'document', 'sec-fetch-mode': 'navigate', accept: 'text/html' }
  const signedIn = await fetch(dev.signInUrl, { headers: opened, redirect: 'manual' })
  const cookie = signedIn.headers
    .getSetCookie()
    .map((one) => one.split(';')[0])
    .join('; ')
  const headers = { cookie, origin: new URL(dev.dashboardUrl).origin, 'x-service-organisation': dev.organisationId }
  await expect
    .poll(
      async () => {
        const list = await fetch(`${dev.baseUrl}/approvals?status=waiting`, { headers })
        const [waiting] = (await list.json()) as { id: string }[]
        if (waiting === undefined) return undefined
        return (await fetch(`${dev.baseUrl}/approvals/${waiting.id}/approve`, { method: 'POST', headers })).status
      },
      { timeout: 30_000 },
    )
    .toBe(200)
}

test('the vault of the guide, and its proof', async () => {
  const before = [
    "import { createReadStream } from 'node:fs'",
    "import { readFile } from 'node:fs/promises'",
    "import { createPurser } from '@purser/sdk'",
    'const purser = createPurser({ apiKey: process.env.PURSER_API_KEY, baseUrl: process.env.PURSER_BASE_URL })',
  ]
  const between = [
    'const [file] = (await purser.vaults.get(vault.id)).files',
    'const proofOfItem = await purser.vaults.proof(vault.id, { item: file.id })',
  ]
  const blocks = [block('docs/vaults.md', 'vaults.create'), ...between, block('docs/vaults.md', 'verifySeal')]
  const printed = await program('vault.ts', [...before, ...blocks, 'console.log(verdict.ok, ofOne.ok)'].join('\n'))
  expect(printed).toBe('true true\n')
})

test('the receiver of the guide to webhooks takes a signed event, and answers 400 to one that is not', async () => {
  const headers = { authorization: `Bearer ${dev.apiKey}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ url: `http://127.0.0.1:${port}/purser`, events: ['payment.settled'] })
  const made = await fetch(`${dev.baseUrl}/webhooks`, { method: 'POST', headers, body })
  const { secret } = (await made.json()) as { secret: string }
  const receiver = await server('hook.ts', block('docs/webhooks.md', 'express.raw'), { WEBHOOK_SECRET: secret })
  let printed = ''
  receiver.stdout?.on('data', (chunk: Buffer) => {
    printed += chunk
  })
  const trigger = { method: 'POST', headers, body: JSON.stringify({ type: 'payment.settled' }) }
  expect((await fetch(`${dev.baseUrl}/events/trigger`, trigger)).status).toBe(201)
  await expect.poll(() => printed).toMatch(/^evt_\w+ pay_\w+ 0\.01\n$/)
  const unsigned = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }
  expect((await fetch(`http://127.0.0.1:${port}/purser`, unsigned)).status).toBe(400)
  await end(receiver)
})
