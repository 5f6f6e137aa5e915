import { type Address, formatAmount, isAddress } from '@purser/protocol'
import { createPurser, type PaymentLog } from '@purser/sdk'
import { decodePaymentRequiredHeader, decodePaymentResponseHeader } from '@x402/core/http'
import type { DevChain } from './chains.ts'
import { callAndPay, type PaidCall, replay } from './demo-agent.ts'
import { demoPrice, type Provider } from './demo-provider.ts'
import type { Dev } from './dev.ts'
import { tokenBalance } from './faucet.ts'
import { expectTrue, type Step } from './narrator.ts'
import { isRecord, rpc } from './rpc.ts'

const rawPrice = 10_000n
const decimals = 6

/** Who pays whom, and on which chain. */
interface Cast {
  readonly dev: Dev
  readonly provider: Provider
  readonly chain: DevChain
  readonly receiver: Address
}

interface Balances {
  readonly payer: bigint
  readonly receiver: bigint
}

/** The whole story, each step checked where the truth is: on the wire, on the chain, in the payment log. */
export async function tellStory(dev: Dev, provider: Provider, step: Step): Promise<void> {
  const cast = await castOf(dev, provider)
  const before = await step('The chain says what payer and receiver hold', () => readBalances(cast))
  const call = await step('An agent with the official @x402/fetch client calls the route', () => payForCall(cast))
  await step('It was asked to pay first', async () => askedToPay(cast, call))
  await step('It signed, and was answered', async () => answered(cast, call))
  const txHash = await step('The answer names the transaction, and the chain has it', () => onChain(cast, call))
  await step('The money moved', () => moneyMoved(cast, before))
  await step('The payment log shows it', () => inPaymentLog(cast, txHash))
  await step('A replay of the signature is refused', () => replayRefused(cast, call, before))
}

async function castOf(dev: Dev, provider: Provider): Promise<Cast> {
  const { address } = await purserOf(dev).wallets.byo.get(dev.walletId)
  const chain = dev.runningChains.find(({ network }) => network === 'base-sepolia')
  if (chain === undefined || !isAddress(address)) throw new Error('the demo needs base-sepolia and an EVM wallet')
  return { dev, provider, chain, receiver: address }
}

async function balances({ dev, chain, receiver }: Cast): Promise<Balances> {
  const [ofPayer, ofReceiver] = await Promise.all([
    tokenBalance(chain, 'USDC', dev.payer.address),
    tokenBalance(chain, 'USDC', receiver),
  ])
  return { payer: ofPayer, receiver: ofReceiver }
}

async function readBalances(cast: Cast) {
  const value = await balances(cast)
  expectTrue(value.payer >= rawPrice, `the payer holds only ${usdc(value.payer)}`)
  return { value, says: `payer ${usdc(value.payer)}, receiver ${usdc(value.receiver)} on ${cast.chain.network}` }
}

async function payForCall({ dev, provider, chain }: Cast) {
  const value = await callAndPay(provider.url, dev.payer, `eip155:${chain.chainId}`)
  return { value, says: `GET ${provider.url}: ${value.exchanges.map(({ status }) => status).join(', then ')}` }
}

function askedToPay({ chain, receiver }: Cast, { exchanges }: PaidCall) {
  const first = exchanges[0]
  expectTrue(first?.status === 402 && first.paymentSignature === null, 'the first answer is not 402')
  const { accepts, x402Version } = decodePaymentRequiredHeader(first.headers.get('PAYMENT-REQUIRED') ?? '')
  const offer = accepts[0]
  expectTrue(x402Version === 2 && offer !== undefined, 'the 402 offers nothing')
  expectTrue(offer.network === `eip155:${chain.chainId}`, `the offer is on ${offer.network}`)
  expectTrue(offer.amount === String(rawPrice), `the offer is ${offer.amount}, the price ${rawPrice}`)
  expectTrue(sameText(offer.asset, chain.tokens.USDC), `the offer is in ${offer.asset}, which is not USDC`)
  expectTrue(sameText(offer.payTo, receiver), `the offer pays ${offer.payTo}, not the provider's wallet`)
  return { value: undefined, says: `402: $${demoPrice} as ${usdc(rawPrice)} on ${offer.network} to ${offer.payTo}` }
}

function answered({ dev, provider }: Cast, { exchanges, body }: PaidCall) {
  const [, second, ...more] = exchanges
  expectTrue(second !== undefined && more.length === 0, `there were ${exchanges.length} exchanges, not two`)
  expectTrue(second.paymentSignature !== null, 'the second request carries no payment')
  expectTrue(second.status === 200, `the paid request is answered ${second.status}: ${JSON.stringify(body)}`)
  expectTrue(isRecord(body) && sameText(body.paidBy, dev.payer.address), 'the handler was not told who paid')
  expectTrue(provider.served() === 1, `the handler ran ${provider.served()} times`)
  return { value: undefined, says: `200: ${JSON.stringify(body)}` }
}

async function onChain({ chain }: Cast, { exchanges }: PaidCall) {
  const { success, transaction } = decodePaymentResponseHeader(exchanges[1]?.headers.get('PAYMENT-RESPONSE') ?? '')
  expectTrue(success && /^0x[0-9a-f]{64}$/.test(transaction), 'PAYMENT-RESPONSE names no transaction')
  const receipt = await rpc(chain.rpcUrl, 'eth_getTransactionReceipt', [transaction])
  expectTrue(isRecord(receipt) && receipt.status === '0x1', `${transaction} did not succeed on ${chain.network}`)
  return { value: transaction, says: `${transaction} in block ${Number(receipt.blockNumber)}` }
}

async function moneyMoved(cast: Cast, before: Balances) {
  const after = await balances(cast)
  const paid = before.payer - after.payer
  const received = after.receiver - before.receiver
  expectTrue(paid === rawPrice, `the payer paid ${usdc(paid)}`)
  expectTrue(received === rawPrice, `the receiver got ${usdc(received)}`)
  return {
    value: undefined,
    says: `payer ${usdc(after.payer)}, receiver ${usdc(after.receiver)}; the payer needed no gas`,
  }
}

async function inPaymentLog({ dev, provider }: Cast, txHash: string) {
  const logs = await purserOf(dev).payments.logs.list({ walletId: dev.walletId }).toArray({ limit: 10 })
  const log: PaymentLog | undefined = logs[0]
  expectTrue(logs.length === 1 && log !== undefined, `the log has ${logs.length} entries, not one`)
  expectTrue(log.status === 'settled', `the log says ${log.status}`)
  expectTrue(log.txHash === txHash, `the log names the transaction ${log.txHash}`)
  expectTrue(log.route === provider.url, `the log names the route ${log.route}`)
  expectTrue(sameText(log.payer, dev.payer.address), `the log names the payer ${log.payer}`)
  return {
    value: undefined,
    says: `${log.paymentId}: ${log.amount} ${log.token}, ${log.status}, ${log.method} ${log.route}`,
  }
}

async function replayRefused(cast: Cast, { exchanges }: PaidCall, before: Balances) {
  const answer = await replay(cast.provider.url, exchanges[1]?.paymentSignature ?? '')
  expectTrue(answer.status === 409, `the replay is answered ${answer.status}`)
  expectTrue(cast.provider.served() === 1, 'the handler ran again')
  const { receiver } = await balances(cast)
  expectTrue(receiver === before.receiver + rawPrice, 'the receiver was paid twice')
  return { value: undefined, says: `${answer.status}: the handler did not run, no more money moved` }
}

function purserOf({ apiKey, baseUrl }: Dev) {
  return createPurser({ apiKey, baseUrl })
}

function usdc(raw: bigint): string {
  return `${formatAmount(raw, decimals)} USDC`
}

function sameText(one: unknown, other: string | undefined): boolean {
  return typeof one === 'string' && one.toLowerCase() === other?.toLowerCase()
}
