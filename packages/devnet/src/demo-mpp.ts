import { balances, blockOf, type Cast, inWords, logsOf, sameText, type Till } from './demo-cast.ts'
import { type MppCall, payByEvmCharge, payByTempoCharge } from './demo-mppx.ts'
import { rawPrice } from './demo-price.ts'
import { expectTrue, type Step } from './narrator.ts'
import { isRecord } from './rpc.ts'

/** The same route is paid by the other protocol, on both of the provider's chains. */
export async function tellOfMpp(cast: Cast, step: Step): Promise<void> {
  const { dev, provider, onBase, onTempo } = cast
  await step('The official mppx client pays the same route on Base (MPP, evm/charge)', () =>
    payOnce(cast, onBase, () => payByEvmCharge(provider.forecastUrl, dev.payer, onBase.chain)),
  )
  await step('And on Tempo, to the other wallet, by handing over a signed transaction (tempo/charge)', () =>
    payOnce(cast, onTempo, () => payByTempoCharge(provider.forecastUrl, dev.payer, onTempo.chain)),
  )
}

/** One paid call: the answer, the transaction, the money and the log must agree. */
async function payOnce(cast: Cast, till: Till, pay: () => Promise<MppCall>) {
  const [before, served] = [await balances(cast, till), cast.provider.served()]
  const { status, body, reference } = await pay()
  expectTrue(status === 200, `the call is answered ${status}: ${JSON.stringify(body)}`)
  expectTrue(isRecord(body) && sameText(body.paidBy, cast.dev.payer.address), 'the handler was not told who paid')
  expectTrue(cast.provider.served() === served + 1, 'the handler did not run once')
  const block = await blockOf(till, reference)
  const after = await balances(cast, till)
  const [paid, received] = [before.payer - after.payer, after.receiver - before.receiver]
  expectTrue(paid === rawPrice, `the payer paid ${inWords(till, paid)}, not the price and no fee`)
  expectTrue(received === rawPrice, `the receiver got ${inWords(till, received)}`)
  const [log] = await logsOf(cast, till)
  expectTrue(log?.protocol === 'mpp' && log.txHash === reference, 'the log does not show it')
  const moved = `${inWords(till, rawPrice)} on ${till.chain.network}, no fee for the payer`
  return { value: undefined, says: `200: ${moved}; Payment-Receipt: ${reference} in block ${block}` }
}
