/** The tutorials, the test scenarios and the commands of guides, followed as they stand on the page. */

import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { createPurser } from '@purser/sdk'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { fileOf, stepsOf } from './guide-steps.ts'
import { type Reader, startReader } from './reader.ts'

const tutorials = ['quick-start', 'agent-wallet', 'receive-deposits', 'moving', 'production'].map(pathOf)

function pathOf(name: string): string {
  return `docs/${name}.md`
}

let reader: Reader
beforeAll(async () => {
  reader = await startReader()
  await reader.follow(pathOf('quick-start'), { section: '1. Start the service' })
  await reader.follow(pathOf('quick-start'), { section: '2. Make a wallet and a webhook' })
})
afterEach(() => reader.endPrograms())
afterAll(() => reader?.stop())

async function follow(page: string, ...sections: readonly string[]): Promise<void> {
  for (const section of sections) await reader.follow(pathOf(page), { section })
}

test('a tutorial says where to save each program, and installs in the same section what it imports', () => {
  const ours = /^(?:\.|node:|@purser\/sdk)/
  for (const page of tutorials) {
    const before = stepsOf(pathOf('quick-start')).filter(({ sections: [section] }) => /^1\./.test(section ?? ''))
    for (const step of stepsOf(page).filter(({ language }) => /^(?:js|ts|python)$/.test(language))) {
      const own = stepsOf(page).filter(({ sections: [section] }) => section === step.sections[0])
      const installed = [...before, ...own].flatMap(({ code }) =>
        [...code.matchAll(/^npm install (.+)$/gm)].flatMap(([, names = '']) => names.split(' ')),
      )
      const imported = [...step.code.matchAll(/^import .* from '([^']+)'$/gm)].map(([, from = '']) => from)
      const packages = imported.map((from) => /^(?:@[^/]+\/)?[^/]+/.exec(from)?.[0] ?? '')
      expect([page, packages.filter((name) => !ours.test(name) && !installed.includes(name))]).toEqual([page, []])
      if (!step.sections.includes('The server before')) expect([page, fileOf(step)]).toEqual([page, expect.any(String)])
    }
  }
})

const paid = ['4. Try it without a chain', '5. Pay on a chain', '6. See the event']

test('a newcomer sells a route, pays for it, gets a receipt and receives a signed event', async () => {
  await follow('quick-start', '3. Sell a route', ...paid)
})

test.each(['Hono', 'Fastify'])('the route is sold with %s in the same way', async (framework) => {
  await follow('quick-start', framework, ...paid)
})

test('the routes of Next are sold in the same way', async () => {
  // In place of `next dev`, which compiles for many seconds: it calls the handlers with the requests of their paths.
  const host = path.join(reader.folder, 'next.mjs')
  writeFileSync(
    host,
    `import { serve } from '@hono/node-server'
     process.loadEnvFile('.env')
     const app = process.cwd() + '/app'
     const { GET } = await import(app + '/forecast/route.js')
     const { POST } = await import(app + '/purser/route.js')
     const handlers = { GET, POST }
     const fetch = (request) => handlers[request.method](request)
     serve({ fetch, port: Number(process.argv[4]), hostname: '127.0.0.1' }, () => console.log('Ready in 1 s'))`,
  )
  await reader.shell(`next() { exec node ${host} "$@"; }`)
  await follow('quick-start', 'Next', ...paid)
})

test('an agent pays under its cap, is refused above it, and waits for a person above the limit for approvals', async () => {
  const page = stepsOf(pathOf('agent-wallet'))
  const sections = [...new Set(page.map(({ sections: [section = ''] }) => section))]
  const approved = sections.indexOf('6. Approve it')
  await follow('agent-wallet', ...sections.slice(0, approved))
  await reader.approveNext()
  await follow('agent-wallet', ...sections.slice(approved))
})

test('customers pay to their addresses, the server learns of it, and the money is collected', async () => {
  await reader.follow(pathOf('receive-deposits'))
})

test('an x402 server and an mppx server have Purser as their facilitator, and the official clients pay them', async () => {
  for (const section of ['The server after', 'Pay it', 'What is new']) await follow('moving', section)
  await reader.endPrograms()
  await follow('moving', 'An mppx server')
})

test('each test scenario ends as its page says', async () => {
  await follow('quick-start', '3. Sell a route')
  await reader.shell('curl() { command curl -sS "$@"; }')
  await reader.follow(pathOf('testing'), { output: 'comments' })
})

/** Sets the variables of the guides, and returns a client. */
async function newcomer() {
  const { baseUrl, apiKey } = reader.dev
  await reader.shell(`BASE=${baseUrl} KEY=${apiKey}`)
  return createPurser({ baseUrl, apiKey })
}

test('the commands of the guide to wallets do what it shows', async () => {
  const { wallets, test: faucet } = await newcomer()
  const page = stepsOf(pathOf('wallets'))
  const sections = [...new Set(page.map(({ sections: [section = ''] }) => section))]
  const funded = sections.indexOf('Balances')
  const differing = ['amlStatus', 'derivationPath', 'formattedBalance', 'rawBalance']
  for (const section of sections.slice(0, funded)) await reader.follow(pathOf('wallets'), { section, differing })
  const id = (await reader.shell('echo $MASTER')).trim()
  const child = await wallets.children.create(id, {})
  for (const walletId of [id, child.id]) await faucet.deposits.create({ walletId, token: 'USDC', amount: '12.5' })
  const received = async () =>
    (await wallets.children.transactions(id, child.id, { status: 'confirmed' }).toArray({ limit: 10 }))[0]
  await expect.poll(received).toBeDefined()
  const instead = { 'mwt_…': id, '0x8f0d…': (await received())?.txHash ?? '' }
  for (const section of sections.slice(funded)) await reader.follow(pathOf('wallets'), { section, instead, differing })
})

test('the commands of the guide to transfers move money', async () => {
  const { wallets, test: faucet } = await newcomer()
  const { id } = await wallets.master.create({ chain: 'base', supportedTokens: ['USDC'] })
  await faucet.deposits.create({ walletId: id, token: 'USDC', amount: '100' })
  await faucet.deposits.create({ walletId: id, token: 'ETH', amount: '0.1' })
  await expect
    .poll(async () => (await wallets.master.transactions(id, { status: 'confirmed' }).toArray({ limit: 10 })).length)
    .toBe(1)
  const { address } = await wallets.master.create({ chain: 'base', supportedTokens: ['USDC'] })
  await reader.follow(pathOf('transfers'), {
    instead: { 'mwt_…': id, '0x…': address },
    differing: ['toAmount', 'minToAmount', 'feeAmount'],
  })
})

test('the commands of the guide to withdrawals pay a bank account', async () => {
  const { wallets, withdrawals, test: faucet } = await newcomer()
  const { id } = await wallets.master.create({ chain: 'base', supportedTokens: ['USDC'] })
  await faucet.deposits.create({ walletId: id, token: 'USDC', amount: '200' })
  await faucet.deposits.create({ walletId: id, token: 'ETH', amount: '0.1' })
  await expect
    .poll(async () => (await wallets.master.transactions(id, { status: 'confirmed' }).toArray({ limit: 10 })).length)
    .toBe(1)
  const details = { currency: 'GBP', sortCode: '20-29-59', accountNumber: '63748472' } as const
  const bank = await withdrawals.bankAccounts.create({ accountName: 'Acme Ltd', ...details })
  await reader.follow(pathOf('withdrawals'), { instead: { 'mwt_…': id, 'bac_…': bank.id } })
})

test('the commands of the guide to vaults end with a proof that is verified offline', async () => {
  const { vaults } = await newcomer()
  await follow('vaults', 'Lifecycle', 'Files', 'Events', 'Access')
  const id = (await reader.shell('echo $VAULT')).trim()
  const [file] = (await vaults.get(id)).files
  await reader.follow(pathOf('vaults'), { section: 'Seal and proof', instead: { 'fil_…': file?.id ?? '' } })
})
