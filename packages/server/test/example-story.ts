import { fundNative, fundToken } from '@purser/devnet'
import type { Address } from '@purser/protocol'
import { sql } from '../src/platform/db/db.ts'
import type { ExampleRecorder } from './example-recorder.ts'
import { aPaymentBody } from './facilitated.ts'
import { formOf } from './files/uploads.ts'
import { aBrowser, ownerOf } from './people.ts'
import { asKey } from './raw-requests.ts'
import { challengeOf, offer } from './wallet-payment-stage.ts'
import { type Answer, aPayer, type DevChain, type Org, type Payer, type World } from './world.ts'

/** What the calls of an example run need: a deployment on two chains and an organisation, with everything recorded. */
export interface ExampleStage {
  readonly world: World
  readonly org: Org
  readonly base: DevChain
  readonly ethereum: DevChain
  readonly record: ExampleRecorder['record']
  /** A webhook that answers 200. */
  readonly hookUrl: string
}

const resource = 'https://api.example.com/forecast?city=Lima'
export const shop: Address = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
export const supplier: Address = '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359'

/** Makes one successful call of every operation that has a body or answers with one. */
export async function callEverything(stage: ExampleStage): Promise<void> {
  await stage.record('test.clock.advance', { body: { advance: '25h' } })
  const walletId = await receivingWallet(stage)
  const treasury = await managedWallet(stage)
  const paymentId = await payments(stage, walletId, treasury)
  await facilitator(stage, walletId)
  const bankAccountId = await movements(stage, treasury)
  await withoutAnOutcome(stage, { walletId, treasury, paymentId, bankAccountId })
  await sessionsAndVaults(stage, paymentId, walletId)
  await webhooksAndEvents(stage)
  await organisation(stage)
}

async function receivingWallet({ record }: ExampleStage): Promise<string> {
  const body = { address: shop, chain: 'base', supportedTokens: ['USDC'], name: 'Forecast API' }
  const { id } = await record('wallets.byo.create', { body })
  const params = { id: String(id) }
  await record('wallets.byo.get', { params, until: ({ amlStatus }) => amlStatus === 'clear' })
  await record('wallets.byo.update', { params, body: { metadata: { team: 'forecasts' } } })
  await record('wallets.byo.list')
  const deposit = { walletId: id, token: 'USDC', amount: '12.5' }
  const { amount } = await record('test.deposits.create', { body: deposit })
  const { txHash } = await record('wallets.byo.transactions', { params, until: confirmed(amount) })
  await record('wallets.deposits.rescan', { body: { chain: 'base', txHash } })
  await record('wallets.byo.balances', { params })
  await record('wallets.holds.summary')
  await record('chains.list')
  await record('chains.tokens', { params: { chain: 'base' } })
  return params.id
}

const confirmed = (amount: unknown) => (found: Readonly<Record<string, unknown>>) =>
  found.amount === amount && found.status === 'confirmed'

async function managedWallet(stage: ExampleStage): Promise<string> {
  const { record, base } = stage
  const body = { name: 'Treasury', chain: 'base', supportedTokens: ['USDC'] }
  const { id, address } = await record('wallets.master.create', { body })
  const params = { id: String(id) }
  const autoSweep = { token: 'USDC', minAmount: '5', everyMinutes: 30 }
  const { id: cad, address: child } = await record('wallets.children.create', { params, body: { name: 'Customer 7' } })
  await fundNative(base, address as Address, 10n ** 18n)
  await fundToken(base, 'USDC', address as Address, 500_000_000n)
  await fundToken(base, 'USDC', child as Address, 10_000_000n)
  const ofChild = { ...params, cad: String(cad) }
  await record('wallets.children.update', { params: ofChild, body: { metadata: { customer: '7' } } })
  await record('wallets.children.get', { params: ofChild })
  await record('wallets.children.list', { params })
  await record('wallets.children.transactions', { params: ofChild, until: confirmed('10') })
  await record('wallets.children.balances', { params: ofChild })
  await record('wallets.master.transactions', { params, until: confirmed('500') })
  await record('wallets.master.balances', { params })
  const { id: sweepId } = await record('wallets.master.sweep', { params, body: { token: 'USDC', minAmount: '5' } })
  const isDone = ({ status }: Readonly<Record<string, unknown>>) => status === 'completed'
  await record('wallets.sweeps.get', { params: { ...params, sweepId: String(sweepId) }, until: isDone })
  await record('wallets.sweeps.list', { params })
  await record('wallets.master.update', { params, body: { autoSweep } })
  await record('wallets.master.get', { params })
  await record('wallets.master.list')
  await record('wallets.master.restore', { params })
  const [anyone, limits] = [{ recipients: 'any' }, { perTransaction: '100', perDay: '500', approvalAbove: '70' }]
  const policy = { operations: { transfer: anyone, withdraw: anyone, pay: anyone }, tokens: { USDC: limits } }
  await record('wallets.master.policy.set', { params, body: policy })
  await record('wallets.master.policy.get', { params })
  return params.id
}

async function payments(stage: ExampleStage, walletId: string, treasury: string): Promise<string> {
  const { record, base } = stage
  const payer = await aPayer(base)
  const terms = { walletId, resource, price: '0.01' }
  const challenge = await record('payments.challenge', { body: { ...terms, description: 'Forecast for a city' } })
  const credential = await payer.credential({ body: challenge } as unknown as Answer)
  const shown = { protocol: 'x402', credential, ...terms, method: 'GET' }
  const verified = await record('payments.verify', { body: { ...shown, reportsDelivery: true } })
  const paymentId = String(verified.paymentId)
  const { settlementToken } = verified
  await record('payments.settle', { body: { paymentId, settlementToken } })
  const params = { id: paymentId }
  const refusedOffer = await stage.world.call(stage.org.testKey, 'POST', '/payments/challenge', terms)
  const refused = await stage.world.call(stage.org.testKey, 'POST', '/payments/verify', {
    ...shown,
    credential: await payer.credential(refusedOffer),
  })
  await record('payments.release', {
    params: { id: String(refused.body.paymentId) },
    body: { settlementToken: refused.body.settlementToken },
  })
  await record('payments.get', { params, atFirst: carried })
  await redemptions(stage, { payer, terms })
  await record('payments.delivered', { body: { paymentIds: [paymentId] } })
  const { id: paymentLogId } = await record('payments.logs.list')
  await record('payments.logs.get', { params: { paymentLogId: String(paymentLogId) } })
  await record('payments.logs.summary')
  await record('account.paymentLogs.list')
  await record('account.paymentLogs.get', { params: { paymentLogId: String(paymentLogId) } })
  await record('account.paymentLogs.summary')
  const [from, to] = [0, 86_400_000].map((ms) => new Date(Date.now() + ms).toISOString().slice(0, 10))
  // Challenges are counted some seconds later, and gas by the present day.
  const gas = [{ day: '2026-11-22', network: 'base-sepolia', usd: '0.0000648' }]
  await record('payments.statistics', {
    query: `?from=${from}T00:00:00Z&to=${to}T00:00:00Z&interval=day`,
    atFirst: { challenges: 4, refused: 0, gas },
  })
  const refund = { fromWalletId: treasury, amount: '0.004', reason: 'The forecast was incomplete.' }
  await record('payments.refund', { params, body: refund })
  await record('payments.refunds.list', { params, until: ({ status }) => status !== 'pending' })
  const snapshot = {
    host: 'api.example.com',
    method: 'GET',
    routePattern: '/forecast',
    amount: '0.01',
    protocol: 'x402',
  }
  const city = { name: 'city', type: 'string', required: true, example: 'Lima' }
  await record('registry.snapshots.create', { body: { ...snapshot, queryParams: [city], paymentLogId } })
  const { id: route } = await record('registry.routes.list', { until: ({ id }) => id !== undefined })
  await record('registry.routes.update', { params: { id: String(route) }, body: { isPublic: true } })
  await record('registry.routes.get', { params: { id: String(route) } })
  const unsent = { block: null, isFinal: false, gasUsd: '0' }
  await record('test.payments.create', { body: { walletId, price: '0.01' }, atFirst: unsent })
  return paymentId
}

interface Sale {
  readonly payer: Payer
  readonly terms: Readonly<Record<string, unknown>>
}

/** The block and the gas of a settled payment, which are later on a slow machine. */
const carried = { block: 7, isFinal: true, gasUsd: '0.0000648' }

/** A server that stopped before it had answered: another process serves the payment. */
async function redemptions(stage: ExampleStage, { payer, terms }: Sale): Promise<void> {
  const { record, world, org } = stage
  for (const id of ['payments.redeemed', 'payments.undelivered']) {
    const offered = await world.call(org.testKey, 'POST', '/payments/challenge', terms)
    const shown = { protocol: 'x402', credential: await payer.credential(offered), method: 'GET' }
    const body = { ...shown, ...terms, reportsDelivery: true }
    const verified = await world.call(org.testKey, 'POST', '/payments/verify', body)
    const { paymentId, settlementToken } = verified.body
    await world.call(org.testKey, 'POST', '/payments/settle', { paymentId, settlementToken })
    // Its grace period is over.
    await world.database.db.run(
      sql`update payments set redemption_until = now() - interval '1 second' where id = ${String(paymentId)}`,
    )
    const { redemptionToken } = await record('payments.redeem', { body: { ...shown, resource } })
    await record(id, { params: { id: String(paymentId) }, body: { redemptionToken }, atFirst: carried })
  }
}

async function facilitator({ world, org, base, record }: ExampleStage, walletId: string): Promise<void> {
  const body = await aPaymentBody(world, org, { payer: await aPayer(base), wallet: { id: walletId } })
  await record('facilitator.verify', { body })
  await record('facilitator.settle', { body })
  await record('facilitator.supported')
  await record('facilitator.resources')
}

interface Known {
  readonly walletId: string
  readonly treasury: string
  readonly paymentId: string
  readonly bankAccountId: string
}

/** Calls whose response is another success than the usual one: most wait for something. */
async function withoutAnOutcome(stage: ExampleStage, known: Known): Promise<void> {
  const { record, world, org, base, hookUrl } = stage
  const { walletId, treasury: fromWalletId, paymentId, bankAccountId } = known
  const terms = { walletId, resource, price: '0.01' }
  const challenge = await world.call(org.testKey, 'POST', '/payments/challenge', terms)
  const credential = await (await aPayer(base)).credential(challenge)
  const shown = { protocol: 'x402', credential, ...terms, method: 'GET' }
  const verified = await world.call(org.testKey, 'POST', '/payments/verify', shown)
  const settle = { paymentId: verified.body.paymentId, settlementToken: verified.body.settlementToken }
  await record('payments.settle', { headers: { ...asKey(org.testKey), prefer: 'respond-async' }, body: settle })
  const body = { fromWalletId, url: `${hookUrl}/forecast`, maxAmount: '0.05' }
  await record('wallets.pay', { body })
  const anyone = { recipients: 'any' }
  const policy = {
    operations: { transfer: anyone, withdraw: anyone, pay: anyone },
    tokens: { USDC: { perTransaction: '100', perDay: '500', approvalAbove: '0.001' } },
  }
  await record('wallets.master.policy.set', { params: { id: fromWalletId }, body: policy })
  await record('payments.refund', { params: { id: paymentId }, body: { fromWalletId, amount: '0.002' } })
  const transfer = { fromWalletId, fromToken: 'USDC', toChain: 'base', toToken: 'USDC', toAddress: supplier }
  await record('transfers.create', { body: { ...transfer, amount: '2.5' } })
  const offered = challengeOf(offer({ payTo: supplier }))
  await record('wallets.pay', { body: { fromWalletId, challenge: offered, maxAmount: '0.05' } })
  const sale = { fromWalletId, token: 'USDC', chain: 'base', amount: '60', bankAccountId }
  await record('withdrawals.create', { body: sale })
}

/** Returns the id of a bank account. */
async function movements(stage: ExampleStage, treasury: string): Promise<string> {
  const { record, ethereum } = stage
  const terms = { fromWalletId: treasury, fromToken: 'USDC', toChain: 'base', toToken: 'USDC', toAddress: supplier }
  await record('transfers.quote', { body: { ...terms, amount: '12.5' } })
  const { id } = await record('transfers.create', { body: { ...terms, amount: '12.5', reference: 'Invoice 7' } })
  await record('transfers.get', { params: { id: String(id) }, until: ({ status }) => status === 'confirmed' })
  await record('transfers.list')
  await approvals(stage, { ...terms, amount: '75' })
  const challenge = challengeOf(offer({ payTo: supplier }))
  await record('wallets.pay', { body: { fromWalletId: treasury, challenge, maxAmount: '0.05' } })
  const account = { accountName: 'Acme Ltd', currency: 'GBP', sortCode: '20-29-59', accountNumber: '63748472' }
  const { id: bankAccountId } = await record('withdrawals.bankAccounts.create', { body: account })
  await record('withdrawals.bankAccounts.get', { params: { id: String(bankAccountId) } })
  await record('withdrawals.bankAccounts.list')
  const sale = { fromWalletId: treasury, token: 'USDC', chain: 'base', amount: '60', bankAccountId }
  const { id: withdrawal } = await record('withdrawals.create', {
    body: { ...sale, reference: 'Payout 7' },
    atFirst: { txHash: null },
  })
  await record('withdrawals.get', { params: { id: String(withdrawal) }, until: ({ status }) => status === 'completed' })
  await record('withdrawals.list')
  const { address } = await record('wallets.legacy.create', { body: { coin: 'USDC' } })
  await fundNative(ethereum, address as Address, 10n ** 18n)
  await fundToken(ethereum, 'USDC', address as Address, 50_000_000n)
  await record('wallets.legacy.get')
  await record('wallets.legacy.history', { until: confirmed('50') })
  await record('wallets.legacy.balance', { query: '?coin=USDC' })
  await record('wallets.legacy.withdraw', { body: { to: supplier, amount: '12.5', coin: 'USDC' } })
  await record('wallets.legacy.create', { body: { coin: 'USDC' } })
  return String(bankAccountId)
}

async function approvals({ record, world, org }: ExampleStage, body: object): Promise<void> {
  const owner = await aBrowser(world, { email: await ownerOf(world, org.id), organisationId: org.id })
  const headers = {
    cookie: owner.cookie,
    origin: new URL(world.config.dashboardUrl).origin,
    'x-service-organisation': org.id,
    'x-service-environment': 'test',
    'content-type': 'application/json',
  }
  const wait = async () => {
    const { body: transfer } = await world.call(org.testKey, 'POST', '/wallet-infra/transfer', body)
    if (transfer.approval === undefined) throw new Error(JSON.stringify(transfer))
    return { id: String(Object(transfer.approval).id) }
  }
  const waiting = await wait()
  await record('approvals.list')
  await record('approvals.get', { params: waiting })
  await record('approvals.approve', { params: waiting, headers })
  await record('approvals.refuse', { params: await wait(), headers, body: { reason: 'Unknown recipient.' } })
  await record('approvals.cancel', { params: await wait() })
  await record('account.sessions.list', { headers })
}

async function sessionsAndVaults({ record }: ExampleStage, paymentId: string, walletId: string): Promise<void> {
  await record('sessions.create', { body: { paymentId, expiresIn: 3_600 } })
  // It replaces the token of the first.
  const { sessionId, sessionToken } = await record('sessions.create', { body: { paymentId, expiresIn: 3_600 } })
  await record('sessions.verify', { body: { sessionToken, host: 'api.example.com', walletId } })
  await record('sessions.get', { params: { sessionId: String(sessionId) } })
  await record('sessions.list')
  const { id } = await record('vaults.create', { body: { description: 'Market report', ttl: '24h' } })
  const params = { id: String(id) }
  await record('vaults.update', { params, body: { metadata: { job: 'market-report-7' } } })
  await record('vaults.extend', { params, body: { ttl: '48h' } })
  const findings = { name: 'Findings', data: { growth: '4.2', unit: 'percent' } }
  const { id: docId } = await record('vaults.documents.add', { params, body: findings })
  await record('vaults.documents.get', { params: { ...params, docId: String(docId) } })
  const form = formOf({ filename: 'findings.csv', type: 'text/csv', content: 'year;growth\n2026;4.2\n' })
  await record('vaults.files.add', { params, form })
  await record('vaults.tokens.create', { params, body: { kind: 'token', expiresIn: '10m' } })
  await record('vaults.tokens.list', { params })
  await record('vaults.emit', { params, body: { event: 'progress', payload: { percent: 40 } } })
  await record('vaults.persist', { params })
  await record('vaults.seal', { params, body: { summary: 'The market grew by 4.2 percent.' } })
  await record('vaults.get', { params })
  await record('vaults.proof', { params })
  await record('vaults.list')
  await record('vaults.quota')
}

async function webhooksAndEvents({ record, hookUrl, world, org }: ExampleStage): Promise<void> {
  const endpoint = { url: hookUrl, events: ['payment.received', 'vault.sealed'] }
  const { id } = await record('webhooks.create', { body: endpoint })
  const params = { webhookId: String(id) }
  await world.call(org.testKey, 'PATCH', `/webhooks/${id}`, { isActive: false })
  await record('webhooks.update', { params, body: { isActive: true } })
  await record('webhooks.get', { params })
  await record('webhooks.list')
  await record('webhooks.rotateSecret', { params })
  const { id: deliveryId } = await record('webhooks.test', { params })
  await record('webhooks.attempts.list', { params, until: (attempt) => attempt.id !== undefined })
  await record('webhooks.replay', { params, body: { deliveryId } })
  const { id: eventId } = await record('events.trigger', { body: { type: 'payment.received' } })
  await record('events.get', { params: { eventId: String(eventId) } })
  await record('events.list')
  await record('events.resend', { params: { eventId: String(eventId) }, body: params })
  await record('events.types')
  await record('events.listener')
}

async function organisation({ record, org, world }: ExampleStage): Promise<void> {
  await record('organisations.create', { body: { name: 'Acme Research' } })
  await record('organisations.update', { body: { name: 'Acme' } })
  await record('organisations.current')
  const member = await record('organisations.members.add', { body: { email: 'agent@example.com', role: 'viewer' } })
  const params = { accountId: String(member.accountId) }
  await record('organisations.members.update', { params, body: { role: 'member' } })
  await record('organisations.members.list')
  const body = { name: 'Shop', environment: 'test' }
  const { id, key } = await record('organisations.apiKeys.create', { body })
  await record('organisations.apiKeys.createIn', { params: { orgId: org.id }, body: { name: 'Shop 2' } })
  await record('organisations.apiKeys.list')
  await record('organisations.apiKeys.listIn', { params: { orgId: org.id } })
  // A key that made another one.
  const keys = '/organisations/current/api-keys'
  await world.call(String(key), 'POST', keys, { name: 'Agent', environment: 'test' })
  await record('organisations.apiKeys.revoke', { params: { keyId: String(id) } })
  const { body: second } = await world.call(org.testKey, 'POST', keys, body)
  await world.call(String(second.key), 'POST', keys, { name: 'Agent', environment: 'test' })
  await record('organisations.apiKeys.revokeIn', { params: { orgId: org.id, keyId: String(second.id) } })
  await record('organisations.auditLog')
  const query = '?route=/payments/settle&status=200'
  const { id: requestId } = await record('requests.list', { query, until: (request) => request.id !== undefined })
  await record('requests.get', { params: { requestId: String(requestId) } })
  await record('account.get')
  await record('account.usage')
  await record('billing.usage')
  await record('billing.plan')
  await record('billing.rebuildCache')
}
