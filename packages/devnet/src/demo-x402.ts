import { decodePaymentRequiredHeader, decodePaymentResponseHeader } from '@x402/core/http'
import { callAndPay, type PaidCall, replay } from './demo-agent.ts'
import { type Balances, balances, blockOf, type Cast, inWords, logsOf, sameText } from './demo-cast.ts'
import { demoPrice, rawPrice } from './demo-price.ts'
import { expectTrue, type Step } from './narrator.ts'
import { isRecord } from './rpc.ts'

/**
 * The agent with the official x402 client buys a forecast: from a request without a payment to a settled payment on a
 * chain.
 */
export async function runX402Steps(cast: Cast, step: Step): Promise<void> {
  const before = await step('The balances of payer and receiver are read from the chain', () => readBalances(cast))
  const call = await step('An agent with the official @x402/fetch client calls the route', () => payForCall(cast))
  await step('The first response was 402', async () => checkPaymentRequired(cast, call))
  await step('It signed, and the second response was 200', async () => answered(cast, call))
  const txHash = await step('The answer names the transaction, and the chain has it', () => onChain(cast, call))
  await step('The money moved', () => moneyMoved(cast, before))
  await step('The payment log shows it', () => inPaymentLog(cast, txHash))
  await step('A replay of the signature is refused', () => replayRefused(cast, call, before))
}

async function readBalances(cast: Cast) {
  const { onBase } = cast
  const value = await balances(cast, onBase)
  expectTrue(value.payer >= rawPrice, `the payer holds only ${inWords(onBase, value.payer)}`)
  return { value, summary: `${inBoth(cast, value)} on ${onBase.chain.network}` }
}

async function payForCall({ dev, provider, onBase: { chain } }: Cast) {
  const value = await callAndPay(provider.forecastUrl, dev.payer, `eip155:${chain.chainId}`)
  return {
    value,
    summary: `GET ${provider.forecastUrl}: ${value.exchanges.map(({ status }) => status).join(', then ')}`,
  }
}

function checkPaymentRequired({ onBase }: Cast, { exchanges }: PaidCall) {
  const { chain, receiver } = onBase
  const first = exchanges[0]
  expectTrue(first?.status === 402 && first.paymentSignature === null, 'the first answer is not 402')
  const { accepts, x402Version } = decodePaymentRequiredHeader(first.headers.get('PAYMENT-REQUIRED') ?? '')
  const offer = accepts[0]
  expectTrue(x402Version === 2 && offer !== undefined, 'the 402 offers nothing')
  expectTrue(offer.network === `eip155:${chain.chainId}`, `the offer is on ${offer.network}`)
  expectTrue(offer.amount === String(rawPrice), `the offer is ${offer.amount}, the price ${rawPrice}`)
  expectTrue(sameText(offer.asset, chain.tokens.USDC), `the offer is in ${offer.asset}, which is not USDC`)
  expectTrue(sameText(offer.payTo, receiver), `the offer pays ${offer.payTo}, not the provider's wallet`)
  return {
    value: undefined,
    summary: `402: $${demoPrice} as ${inWords(onBase, rawPrice)} on ${offer.network} to ${offer.payTo}`,
  }
}

function answered({ dev, provider }: Cast, { exchanges, body }: PaidCall) {
  const [, second, ...more] = exchanges
  expectTrue(second !== undefined && more.length === 0, `there were ${exchanges.length} exchanges, not two`)
  expectTrue(second.paymentSignature !== null, 'the second request carries no payment')
  expectTrue(second.status === 200, `the paid request is answered ${second.status}: ${JSON.stringify(body)}`)
  expectTrue(
    isRecord(body) && sameText(body.paidBy, dev.payer.address),
    'the handler did not receive the address of the payer',
  )
  expectTrue(provider.served() === 1, `the handler ran ${provider.served()} times`)
  return { value: undefined, summary: `200: ${JSON.stringify(body)}` }
}

async function onChain({ onBase }: Cast, { exchanges }: PaidCall) {
  const { success, transaction } = decodePaymentResponseHeader(exchanges[1]?.headers.get('PAYMENT-RESPONSE') ?? '')
  expectTrue(success, 'PAYMENT-RESPONSE does not report success')
  return { value: transaction, summary: `${transaction} in block ${await blockOf(onBase, transaction)}` }
}

async function moneyMoved(cast: Cast, before: Balances) {
  const after = await balances(cast, cast.onBase)
  const paid = before.payer - after.payer
  const received = after.receiver - before.receiver
  expectTrue(paid === rawPrice, `the payer paid ${inWords(cast.onBase, paid)}`)
  expectTrue(received === rawPrice, `the receiver got ${inWords(cast.onBase, received)}`)
  return { value: undefined, summary: `${inBoth(cast, after)}; the payer needed no gas` }
}

async function inPaymentLog(cast: Cast, txHash: string) {
  const { dev, provider, onBase } = cast
  const [log, ...more] = await logsOf(cast, onBase)
  expectTrue(log !== undefined && more.length === 0, `the log has ${more.length} entries more than one`)
  expectTrue(log.status === 'settled', `the log says ${log.status}`)
  expectTrue(log.txHash === txHash, `the log names the transaction ${log.txHash}`)
  expectTrue(log.route === provider.forecastUrl, `the log names the route ${log.route}`)
  expectTrue(sameText(log.payer, dev.payer.address), `the log names the payer ${log.payer}`)
  return {
    value: undefined,
    summary: `${log.paymentId}: ${log.amount} ${log.token}, ${log.status}, ${log.method} ${log.route}`,
  }
}

async function replayRefused(cast: Cast, { exchanges }: PaidCall, before: Balances) {
  const response = await replay(cast.provider.forecastUrl, exchanges[1]?.paymentSignature ?? '')
  expectTrue(response.status === 409, `the replay is answered ${response.status}`)
  expectTrue(cast.provider.served() === 1, 'the handler ran again')
  const { receiver } = await balances(cast, cast.onBase)
  expectTrue(receiver === before.receiver + rawPrice, 'the receiver was paid twice')
  return { value: undefined, summary: `${response.status}: the handler did not run, no more money moved` }
}

function inBoth({ onBase }: Cast, { payer, receiver }: Balances): string {
  return `payer ${inWords(onBase, payer)}, receiver ${inWords(onBase, receiver)}`
}
