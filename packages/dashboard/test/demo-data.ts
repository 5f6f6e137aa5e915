import { createPurser, type Purser } from '@purser/sdk'
import { callAndPay } from '../../devnet/src/demo-agent.ts'
import { startProvider } from '../../devnet/src/demo-provider.ts'
import type { DevRecord } from '../../devnet/src/dev-file.ts'
import { moveMoneyOut, reportRoutes, sweepOnce } from './demo-money-out.ts'
import { makeVaults } from './demo-vaults.ts'

/** What stubs are paid for: short and long routes, small and large amounts. */
const sold = [
  ['GET', 'https://api.example.com/forecast', '0.01'],
  ['GET', 'https://api.example.com/markets/quotes', '0.002'],
  ['POST', 'https://api.example.com/research', '1.25'],
  [
    'POST',
    'https://translate.example.com/v2/documents/with/a/path/that/goes/on/for/longer/than/any/column',
    '0.000001',
  ],
  ['GET', 'https://data.example.com/company/filings', '1250.5'],
] as const

/** Ids of the created objects, by their placeholders in `pages.ts`. */
export type DemoData = Readonly<Record<string, string>>

/** Fills an organisation with what use leaves: payments that moved money on a chain, stubs, wallets with balances. */
export async function makeDemoData(dev: DevRecord): Promise<DemoData> {
  const purser = createPurser({ apiKey: dev.apiKey, baseUrl: dev.baseUrl })
  const { walletId, childId } = await makeWallets(purser)
  await payStubs(purser, dev.walletId)
  await payOnChain(dev)
  const [newest] = await purser.payments.logs.list({ limit: 1 }).toArray({ limit: 1 })
  const paymentId = newest?.paymentId ?? ''
  const webhook = await purser.webhooks.create({ url: `${dev.baseUrl}/receiver`, events: ['*'] })
  await inviteTeam(purser)
  await makeKeys(purser)
  await reportRoutes(purser, paymentId)
  const moved = await moveMoneyOut(purser, dev, walletId)
  const sweepId = await sweepOnce(purser, { walletId, childId })
  const vaults = await makeVaults(purser)
  await failSome(purser, dev.walletId)
  return { walletId, childId, sweepId, paymentId, webhookId: webhook.id, ...moved, ...vaults }
}

async function makeWallets(purser: Purser): Promise<Readonly<Record<'walletId' | 'childId', string>>> {
  const treasury = await purser.wallets.master.create({ chain: 'base', name: 'Treasury', supportedTokens: ['USDC'] })
  await purser.wallets.master.create({
    chain: 'ethereum',
    name: 'Payouts to suppliers with a name that is longer than it should be',
    supportedTokens: ['USDC'],
  })
  await purser.test.deposits.create({ walletId: treasury.id, token: 'USDC', amount: '25' })
  const child = await purser.wallets.children.create(treasury.id, { name: 'Customer 7' })
  await purser.test.deposits.create({ walletId: child.id, token: 'USDC', amount: '12.5' })
  await purser.wallets.children.create(treasury.id, {
    name: 'A customer with a name that is longer than any column would be',
  })
  await purser.wallets.master.policy.set(treasury.id, {
    operations: { transfer: { recipients: 'any' }, withdraw: { recipients: 'any' } },
    tokens: { USDC: { perTransaction: '100', perDay: '500', perMonth: '2500', approvalAbove: '60' } },
  })
  return { walletId: treasury.id, childId: child.id }
}

async function payStubs(purser: Purser, walletId: string): Promise<void> {
  const [[method, resource, price]] = sold
  await purser.payments.challenges({ walletId, resource, method, price, count: 60 })
  const calls = Array.from({ length: 40 }, (_, index) => sold[index % sold.length] ?? sold[0])
  for (const [method, resource, price] of calls)
    await purser.payments.verify({
      protocol: 'x402',
      credential: 'stub_payment_accepted',
      price,
      currency: 'USD',
      walletId,
      resource,
      method,
      reportsDelivery: false,
    })
}

/** The official x402 client pays a route of our middleware: real test money, settled on the local chain. */
async function payOnChain(dev: DevRecord): Promise<void> {
  const chainId = dev.chains['base-sepolia']?.chainId
  if (chainId === undefined) return
  const provider = await startProvider(dev)
  try {
    for (let paid = 0; paid < 3; paid += 1) await callAndPay(provider.forecastUrl, dev.payer, `eip155:${chainId}`)
  } finally {
    await provider.stop()
  }
}

async function inviteTeam(purser: Purser): Promise<void> {
  await purser.organisations.members.add({ email: 'ann.lee@example.com', role: 'member' })
  const email = 'an.accountant.with.a.name.that.is.longer.than.most@accounting-and-audit.example.com'
  await purser.organisations.members.add({ email, role: 'viewer' })
}

/** A key with limits, and one that was revoked. */
async function makeKeys(purser: Purser): Promise<void> {
  const expiresAt = new Date(Date.now() + 30 * 86_400_000).toISOString()
  const request = { environment: 'test', scopes: ['read', 'payments'], expiresAt } as const
  await purser.organisations.apiKeys.create({ ...request, name: 'Production server of the research team in Zurich' })
  const { id } = await purser.organisations.apiKeys.create({ name: 'Old laptop', environment: 'test' })
  await purser.organisations.apiKeys.revoke(id)
}

/** Requests that the service refuses, for the log. */
async function failSome(purser: Purser, walletId: string): Promise<void> {
  const stub = { protocol: 'x402', price: '0.01', currency: 'USD', walletId, reportsDelivery: false } as const
  const resource = { resource: 'https://api.example.com/forecast', method: 'GET' } as const
  const calls = [
    () => purser.payments.verify({ ...stub, ...resource, credential: 'stub_payment_once' }),
    () => purser.payments.verify({ ...stub, ...resource, credential: 'stub_payment_once' }),
    () => purser.payments.verify({ ...stub, ...resource, credential: 'not a credential' }),
    () => purser.payments.get('pay_01h455vb4pex5vsknk084sn02q'),
  ]
  for (const call of calls) await call().catch(() => undefined)
}
