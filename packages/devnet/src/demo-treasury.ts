import { formatAmount } from '@purser/protocol'
import type { Purser } from '@purser/sdk'
import type { WebhookEventType } from '@purser/sdk/webhooks'
import { blockOf, type Cast, inWords, type Till } from './demo-cast.ts'
import type { Listening } from './demo-listen.ts'
import { fundNative, tokenBalance } from './faucet.ts'
import { expectTrue, type Step } from './narrator.ts'

interface Telling {
  readonly step: Step
  readonly listening: Listening
}

/** Pays for the gas of everything that the treasury sends, in wei. */
const gasWei = 10n ** 18n
/** A routing number that exists, and an account that does not matter: the sandbox pays no bank. */
const account = { accountName: 'Forecasts Ltd', currency: 'USD', routingNumber: '021000021' } as const
const accountNumber = '123456789'

/** What the provider has earned goes to another chain, and from there to its bank. */
export async function tellOfTreasury(cast: Cast, treasury: Till, { step, listening }: Telling): Promise<void> {
  const there = await step('What its treasury holds it bridges to Ethereum, and it is told when that has arrived', () =>
    bridgeAll(cast, treasury, listening),
  )
  const bankAccountId = await step('It names its bank account, whose details nobody is shown again', () =>
    nameBank(cast),
  )
  await step('It withdraws everything from Ethereum to its bank, and it is told when that is paid', () =>
    withdrawAll(cast, { from: there, bankAccountId }, listening),
  )
}

async function bridgeAll({ dev, purser }: Cast, here: Till, listening: Listening) {
  const chain = dev.runningChains.find(({ network }) => network === 'eth-sepolia')
  if (chain === undefined) throw new Error('the demo needs eth-sepolia')
  // The key of a managed wallet has the same address on every EVM chain.
  const there: Till = { ...here, chain }
  await Promise.all([here, there].map((till) => fundNative(till.chain, till.receiver, gasWei)))
  const { id, amount, block } = await sendAcross(purser, here)
  await expectEnd(listening, id, 'transfer.completed')
  const [left, arrived] = [await held(here), await held(there)]
  const { status, toAmount } = await purser.transfers.get(id)
  expectTrue(status === 'confirmed' && toAmount === formatAmount(arrived, 6), 'the transfer says otherwise')
  expectTrue(left === 0n && arrived > 0n, `${inWords(here, left)} are left, ${inWords(there, arrived)} arrived`)
  const says = `${amount} USDC, pending in block ${block} of ${here.chain.network}; transfer.completed: ${inWords(there, arrived)} on ${chain.network}`
  return { value: there, says }
}

/** All that the wallet holds, to its own address on the other chain; answered while it is under way. */
async function sendAcross(purser: Purser, here: Till) {
  const { walletId: fromWalletId, receiver: toAddress } = here
  const amount = formatAmount(await held(here), 6)
  const how = { fromToken: 'USDC', toChain: 'ethereum', toToken: 'USDC' } as const
  const { id, status, route, txHash } = await purser.transfers.create({ fromWalletId, toAddress, amount, ...how })
  expectTrue(status === 'pending' && route === 'partner-bridge', `the answer is ${status}, ${route}`)
  return { id, amount, block: await blockOf(here, txHash ?? undefined) }
}

async function nameBank({ purser }: Cast) {
  const made = await purser.withdrawals.bankAccounts.create({ ...account, accountNumber })
  expectTrue(!JSON.stringify(made).includes(accountNumber), 'the answer has the whole account number')
  return { value: made.id, says: `${made.id}: ${made.currency} account ${made.maskedAccount} of ${made.accountName}` }
}

interface Payout {
  readonly from: Till
  readonly bankAccountId: string
}

async function withdrawAll({ purser }: Cast, { from, bankAccountId }: Payout, listening: Listening) {
  const raw = await held(from)
  const what = { amount: formatAmount(raw, 6), token: 'USDC', chain: 'ethereum', reference: 'Earnings' } as const
  const { id, status } = await purser.withdrawals.create({ fromWalletId: from.walletId, bankAccountId, ...what })
  expectTrue(status === 'pending_conversion', `the answer is ${status}`)
  await expectEnd(listening, id, 'withdrawal.completed')
  const done = await purser.withdrawals.get(id)
  expectTrue(done.status === 'completed' && done.payoutAmount !== null, `the withdrawal is ${done.status}`)
  const block = await blockOf(from, done.txHash ?? undefined)
  const left = await held(from)
  expectTrue(left === 0n, `${inWords(from, left)} are left`)
  const paid = `withdrawal.completed: ${done.payoutAmount} ${done.currency} to the bank`
  return { value: undefined, says: `${id}: ${inWords(from, raw)} in block ${block} of ${from.chain.network}; ${paid}` }
}

function held({ chain, symbol, receiver }: Till): Promise<bigint> {
  return tokenBalance(chain, symbol, receiver)
}

const ends = ['transfer.completed', 'transfer.failed', 'withdrawal.completed', 'withdrawal.failed']

/** Waits until the provider is told how it ended; ends the step unless that is as it should be. */
async function expectEnd(listening: Listening, id: string, type: WebhookEventType): Promise<void> {
  const { event } = await listening.until(
    (delivery) => ends.includes(delivery.event.type) && Object.values(delivery.event.payload).includes(id),
  )
  expectTrue(event.type === type, `it ended with ${event.type}`)
}
