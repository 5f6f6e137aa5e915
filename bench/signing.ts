import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { createSignatures } from '../packages/server/src/chain/index.ts'
import { createAccountSigner } from '../packages/server/src/custody/signer.ts'
import { figure, median, table } from './figures.ts'

const recipient = '0x00000000000000000000000000000000000000aa'
const fees = { maxFeePerGas: 2_000_000_000n, maxPriorityFeePerGas: 1_000_000n }

/**
 * Measures transactions per second signed by the signer of managed wallets and by viem, in turn, on one core and with
 * the key in memory. Returns how many differ from viem's.
 */
export async function benchSigning(rounds: number, pollMs: number): Promise<number> {
  const key = generatePrivateKey()
  const viem = privateKeyToAccount(key)
  const signatures = await createSignatures()
  const privateKey = Buffer.from(key.slice(2), 'hex')
  const signDigest = async (digest: Uint8Array) => signatures.sign(digest, privateKey)
  const ours = createAccountSigner({ address: viem.address, signDigest }, signatures)
  const withOurs = async (nonce: number): Promise<string> => {
    const call = {
      chainId: 84_532,
      nonce: BigInt(nonce),
      to: recipient,
      data: '0x',
      value: 1n,
      gasLimit: 21_000n,
    } as const
    return (await ours.signTransaction({ ...call, ...fees })).raw
  }
  const withViem = (nonce: number): Promise<string> =>
    viem.signTransaction({ type: 'eip1559', chainId: 84_532, nonce, to: recipient, value: 1n, gas: 21_000n, ...fees })

  let wrong = 0
  for (let nonce = 0; nonce < 20; nonce += 1) if ((await withOurs(nonce)) !== (await withViem(nonce))) wrong += 1
  const rates: { readonly ours: number; readonly viem: number }[] = []
  for (let round = 0; round < rounds; round += 1)
    rates.push({ ours: await perSecond(withOurs, pollMs), viem: await perSecond(withViem, pollMs) })
  const rows = [
    ['purser, native secp256k1', figure(median(rates.map((rate) => rate.ours)))],
    ['viem signTransaction', figure(median(rates.map((rate) => rate.viem)))],
  ]
  console.log(`\nsigning: ${rounds} rounds in turn, key at hand\n\n${table(['', 'signed/s'], rows)}`)
  console.log(
    `  ratio ${figure(median(rates.map((rate) => rate.ours / rate.viem)))}x; other bytes than viem's: ${wrong}`,
  )
  return wrong
}

async function perSecond(sign: (nonce: number) => Promise<string>, ms: number): Promise<number> {
  const began = performance.now()
  let signed = 0
  for (; performance.now() - began < ms; signed += 1) await sign(signed)
  return (signed / (performance.now() - began)) * 1_000
}
