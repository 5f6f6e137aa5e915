import { balances, blockOf, type Cast, inWords, logsOf, type SellerWallet, sameText } from './demo-cast.ts'
import { type MppCall, payByEvmCharge, payByTempoCharge } from './demo-mppx.ts'
import { rawPrice } from './demo-price.ts'
import { expectTrue, type Step } from './narrator.ts'
import { isRecord } from './rpc.ts'

/** Pays the route of the x402 steps by MPP, on both of the provider's chains. */
export async function runMppSteps(cast: Cast, step: Step): Promise<void> {
  const { dev, provider, onBase, onTempo } = cast
  await step('The official mppx client pays the same route on Base (MPP, evm/charge)', () =>
    payOnce(cast, onBase, () => payByEvmCharge(provider.forecastUrl, dev.payer, onBase.chain)),
  )
  await step('And on Tempo, to the other wallet, with a signed transaction for the seller to send (tempo/charge)', () =>
    payOnce(cast, onTempo, () => payByTempoCharge(provider.forecastUrl, dev.payer, onTempo.chain)),
  )
}

/** Makes one paid call. The response, the transaction, the balances and the log must agree. */
async function payOnce(cast: Cast, seller: SellerWallet, pay: () => Promise<MppCall>) {
  const [before, served] = [await balances(cast, seller), cast.provider.served()]
  const { status, body, reference } = await pay()
  expectTrue(status === 200, `the call is answered ${status}: ${JSON.stringify(body)}`)
  expectTrue(
    isRecord(body) && sameText(body.paidBy, cast.dev.payer.address),
    'the handler did not receive the address of the payer',
  )
  expectTrue(cast.provider.served() === served + 1, 'the handler did not run once')
  const block = await blockOf(seller, reference)
  const after = await balances(cast, seller)
  const [paid, received] = [before.payer - after.payer, after.receiver - before.receiver]
  expectTrue(paid === rawPrice, `the payer paid ${inWords(seller, paid)}, not the price and no fee`)
  expectTrue(received === rawPrice, `the receiver got ${inWords(seller, received)}`)
  const [log] = await logsOf(cast, seller)
  expectTrue(log?.protocol === 'mpp' && log.txHash === reference, 'the log does not show it')
  const moved = `${inWords(seller, rawPrice)} on ${seller.chain.network}, no fee for the payer`
  return { value: undefined, summary: `200: ${moved}; Payment-Receipt: ${reference} in block ${block}` }
}
