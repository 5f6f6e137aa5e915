import { formatAmount } from '@purser/protocol'
import type { Purser } from '@purser/sdk'
import type { WebhookEventType } from '@purser/sdk/webhooks'
import { blockOf, type Cast, inWords, type SellerWallet } from './demo-cast.ts'
import type { Listening } from './demo-listen.ts'
import { fundNative, tokenBalance } from './faucet.ts'
import { expectTrue, type Step } from './narrator.ts'

interface Steps {
  readonly step: Step
  readonly listening: Listening
}

/** Pays for the gas of everything that the treasury sends, in wei. */
const gasWei = 10n ** 18n
/** A routing number that exists, and an account that does not matter: the sandbox pays no bank. */
const account = { accountName: 'Forecasts Ltd', currency: 'USD', routingNumber: '021000021' } as const
const accountNumber = '123456789'

/** The provider moves its earnings to another chain, and from there to its bank. */
export async function runTreasurySteps(cast: Cast, treasury: SellerWallet, { step, listening }: Steps): Promise<void> {
  const there = await step(
    'What its treasury holds it bridges to Ethereum, and it receives an event when that has arrived',
    () => bridgeAll(cast, treasury, listening),
  )
  const bankAccountId = await step('It adds its bank account, whose full number is never shown again', () =>
    nameBank(cast),
  )
  await step('It withdraws everything from Ethereum to its bank, and it receives an event when that is paid', () =>
    withdrawAll(cast, { from: there, bankAccountId }, listening),
  )
}

async function bridgeAll({ dev, purser }: Cast, here: SellerWallet, listening: Listening) {
  const chain = dev.runningChains.find(({ network }) => network === 'eth-sepolia')
  if (chain === undefined) throw new Error('the demo needs eth-sepolia')
  // The key of a managed wallet has the same address on every EVM chain.
  const there: SellerWallet = { ...here, chain }
  await Promise.all([here, there].map((seller) => fundNative(seller.chain, seller.receiver, gasWei)))
  const { id, amount, block } = await sendAcross(purser, here)
  await expectEnd(listening, id, 'transfer.completed')
  const [left, arrived] = [await balanceOf(here), await balanceOf(there)]
  const { status, toAmount } = await purser.transfers.get(id)
  expectTrue(status === 'confirmed' && toAmount === formatAmount(arrived, 6), 'the transfer does not match the event')
  expectTrue(left === 0n && arrived > 0n, `${inWords(here, left)} are left, ${inWords(there, arrived)} arrived`)
  const summary = `${amount} USDC, pending in block ${block} of ${here.chain.network}; transfer.completed: ${inWords(there, arrived)} on ${chain.network}`
  return { value: there, summary }
}

/**
 * Sends the whole balance to the wallet's own address on the other chain. The response comes while the transfer is
 * pending.
 */
async function sendAcross(purser: Purser, here: SellerWallet) {
  const { walletId: fromWalletId, receiver: toAddress } = here
  const amount = formatAmount(await balanceOf(here), 6)
  const how = { fromToken: 'USDC', toChain: 'ethereum', toToken: 'USDC' } as const
  const { id, status, route, txHash } = await purser.transfers.create({ fromWalletId, toAddress, amount, ...how })
  expectTrue(status === 'pending' && route === 'partner-bridge', `the answer is ${status}, ${route}`)
  return { id, amount, block: await blockOf(here, txHash ?? undefined) }
}

async function nameBank({ purser }: Cast) {
  const made = await purser.withdrawals.bankAccounts.create({ ...account, accountNumber })
  expectTrue(!JSON.stringify(made).includes(accountNumber), 'the answer has the whole account number')
  return {
    value: made.id,
    summary: `${made.id}: ${made.currency} account ${made.maskedAccount} of ${made.accountName}`,
  }
}

interface Payout {
  readonly from: SellerWallet
  readonly bankAccountId: string
}

async function withdrawAll({ purser }: Cast, { from, bankAccountId }: Payout, listening: Listening) {
  const raw = await balanceOf(from)
  const what = { amount: formatAmount(raw, 6), token: 'USDC', chain: 'ethereum', reference: 'Earnings' } as const
  const { id, status } = await purser.withdrawals.create({ fromWalletId: from.walletId, bankAccountId, ...what })
  expectTrue(status === 'pending_conversion', `the answer is ${status}`)
  await expectEnd(listening, id, 'withdrawal.completed')
  const done = await purser.withdrawals.get(id)
  expectTrue(done.status === 'completed' && done.payoutAmount !== null, `the withdrawal is ${done.status}`)
  const block = await blockOf(from, done.txHash ?? undefined)
  const left = await balanceOf(from)
  expectTrue(left === 0n, `${inWords(from, left)} are left`)
  const paid = `withdrawal.completed: ${done.payoutAmount} ${done.currency} to the bank`
  return {
    value: undefined,
    summary: `${id}: ${inWords(from, raw)} in block ${block} of ${from.chain.network}; ${paid}`,
  }
}

function balanceOf({ chain, symbol, receiver }: SellerWallet): Promise<bigint> {
  return tokenBalance(chain, symbol, receiver)
}

const ends = ['transfer.completed', 'transfer.failed', 'withdrawal.completed', 'withdrawal.failed']

/** Waits for the event about its end. Fails the step unless the event has the expected type. */
async function expectEnd(listening: Listening, id: string, type: WebhookEventType): Promise<void> {
  const { event } = await listening.until(
    (delivery) => ends.includes(delivery.event.type) && Object.values(delivery.event.payload).includes(id),
  )
  expectTrue(event.type === type, `it ended with ${event.type}`)
}
