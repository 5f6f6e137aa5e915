/** The programs of the README and of the guides, run as they stand on the page against the service that `npm start` starts. */

import { execFile, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { root } from './guide-steps.ts'
import { type Reader, startReader } from './reader.ts'

const run = promisify(execFile)

let reader: Reader
beforeAll(async () => {
  reader = await startReader()
})
afterEach(() => reader.endPrograms())
afterAll(() => reader?.stop())

test('the shop and the agent of the README run as printed', async () => {
  await reader.server('shop.mjs', reader.block('README.md', 'payMiddleware'))
  expect((await fetch(`http://localhost:${reader.port}/forecast`)).status).toBe(402)
  const printed = await reader.program('agent.mjs', reader.block('README.md', 'wrapFetchWithPayment'))
  expect(printed).toMatch(/^200 \{ sky: 'clear', paidBy: '0x[0-9a-fA-F]{40}' \} \{\s+success: true/)
})

test('the server of the guide describes its paid route with the offer that its 402 has', async () => {
  await reader.server('shop.mjs', reader.block('docs/sdk.md', 'discovery({ info'))
  const document = await (await fetch(`http://localhost:${reader.port}/openapi.json`)).json()
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
})

test('the MCP server of the guide sells its tool to the agent of the guide', async () => {
  writeFileSync(path.join(reader.folder, 'weather.mjs'), reader.block('docs/sdk.md', 'createPaidTool({'))
  const printed = await reader.program('buyer.mjs', reader.block('docs/sdk.md', 'StdioClientTransport({'))
  expect(printed).toMatch(
    /text: 'Clear in Lima, paid by 0x[0-9a-fA-F]{40}'[\s\S]*success: true[\s\S]*transaction: '0x[0-9a-f]{64}'/,
  )
})

test('the program of the guide to refunds gives the money of a payment back', async () => {
  await reader.server('shop.mjs', reader.block('README.md', 'payMiddleware'))
  await reader.program('agent.mjs', reader.block('README.md', 'wrapFetchWithPayment'))
  const headers = { authorization: `Bearer ${reader.dev.apiKey}` }
  const logs = await fetch(`${reader.dev.baseUrl}/payments/logs?limit=1`, { headers })
  const [paid] = (await logs.json()) as [{ paymentId: string }]
  const refund = reader.block('docs/refunds.md', 'test.deposits.create', { 'pay_…': paid.paymentId })
  expect(await reader.program('refund.mjs', refund)).toMatch(/^completed 0\.01 0x[0-9a-f]{64}\n$/)
})

test('the program of the guide to wallets sees a deposit', async () => {
  expect(await reader.program('deposits.mjs', reader.block('docs/wallets.md', 'deposit.success'))).toMatch(
    /^12\.5 USDC 0x[0-9a-f]{64}\n$/,
  )
})

const hasPython = spawnSync('python3', ['-c', 'import sys; sys.exit(sys.version_info < (3, 9))']).status === 0

test.skipIf(!hasPython)(
  'the agent of the guide to Python pays under its caps, and above one after a person has approved',
  async () => {
    await reader.server('seller.mjs', reader.block('docs/agent-wallet.md', 'const prices'), {
      WALLET_ID: reader.dev.walletId,
    })
    const code = [
      reader.block('docs/python.md', 'policy.set'),
      "agent_key, base_url, wallet_id = key['key'], os.environ['PURSER_BASE_URL'], wallet['id']",
      reader.block('docs/python.md', 'def buy').replace('time.sleep(5)', 'time.sleep(0.5)'),
      "while not any(float(one['formattedBalance']) for one in agent.wallets.master.balances(wallet_id)):\n    time.sleep(0.2)",
      `for path in ['cheap', 'huge', 'dear']:\n    print((buy(f'http://localhost:${reader.port}/{path}') or {}).get('status'))`,
    ]
    const approving = reader.approveNext()
    const { stdout } = await run('python3', ['-c', code.join('\n')], {
      cwd: path.join(root, 'packages/python/src'),
      env: reader.env({ PYTHONDONTWRITEBYTECODE: '1' }),
    })
    expect(stdout.split('\n')).toEqual([
      '200',
      expect.stringMatching(/^policy-denied .*at most 0\.50 USDC/),
      'None',
      '200',
      '',
    ])
    await approving
  },
)

test('the vault of the guide, and its proof', async () => {
  writeFileSync(path.join(reader.folder, 'measurements.csv'), 'day;mm\n1;0\n')
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
  const blocks = [
    reader.block('docs/vaults.md', 'vaults.create'),
    ...between,
    reader.block('docs/vaults.md', 'verifySeal'),
  ]
  const printed = await reader.program(
    'vault.ts',
    [...before, ...blocks, 'console.log(verdict.ok, ofOne.ok)'].join('\n'),
  )
  expect(printed).toBe('true true\n')
})

test('the receiver of the guide to webhooks takes a signed event, and answers 400 to one that is not', async () => {
  const headers = { authorization: `Bearer ${reader.dev.apiKey}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ url: `http://127.0.0.1:${reader.port}/purser`, events: ['payment.settled'] })
  const made = await fetch(`${reader.dev.baseUrl}/webhooks`, { method: 'POST', headers, body })
  const { secret } = (await made.json()) as { secret: string }
  const receiver = await reader.server('hook.ts', reader.block('docs/webhooks.md', 'express.raw'), {
    WEBHOOK_SECRET: secret,
  })
  let printed = ''
  receiver.stdout?.on('data', (chunk: Buffer) => {
    printed += chunk
  })
  const trigger = { method: 'POST', headers, body: JSON.stringify({ type: 'payment.settled' }) }
  expect((await fetch(`${reader.dev.baseUrl}/events/trigger`, trigger)).status).toBe(201)
  await expect.poll(() => printed).toMatch(/^evt_\w+ pay_\w+ 0\.01\n$/)
  const unsigned = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }
  expect((await fetch(`http://127.0.0.1:${reader.port}/purser`, unsigned)).status).toBe(400)
})
