import { createServer } from 'node:http'
import { createPublicClient, createWalletClient, erc20Abi, http, isAddress, nonceManager } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import { listen, runAsChild, setting } from './child-side.ts'
import { isRecord } from './parse.ts'

/**
 * The code of a developer who sends tokens with viem: `writeContract` under its nonce manager, then the receipt. Behind HTTP, since that is
 * how the other side is called, with JSON-RPC batching and receipts polled often, which measured best.
 */
await runAsChild(async () => {
  const transport = http(setting('BENCH_RPC_URL'), { batch: true })
  const options = { chain: baseSepolia, transport, pollingInterval: Number(setting('BENCH_RECEIPT_POLL_MS')) }
  const reads = createPublicClient(options)
  const accounts = Array.from({ length: Number(setting('BENCH_WALLETS')) }, () =>
    privateKeyToAccount(generatePrivateKey(), { nonceManager }),
  )
  const wallets = accounts.map((account) => createWalletClient({ ...options, account }))
  const token = addressOf(setting('BENCH_TOKEN'))

  const send = async (body: unknown): Promise<string> => {
    if (!isRecord(body)) throw new Error('not a transfer')
    const wallet = wallets[Number(body.wallet)]
    if (wallet === undefined) throw new Error('no such wallet')
    const args = [addressOf(body.to), BigInt(String(body.rawAmount))] as const
    const hash = await wallet.writeContract({ address: token, abi: erc20Abi, functionName: 'transfer', args })
    const { status } = await reads.waitForTransactionReceipt({ hash })
    return status
  }
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const status = await send(JSON.parse(Buffer.concat(chunks).toString())).catch((error: unknown) => String(error))
    const text = JSON.stringify({ status })
    response.writeHead(status === 'success' ? 201 : 500, { 'content-length': Buffer.byteLength(text) }).end(text)
  })
  const { ready, stop } = await listen(server)
  return { ready: { ...ready, addresses: accounts.map(({ address }) => address).join(' ') }, stop }
})

function addressOf(value: unknown): `0x${string}` {
  if (typeof value !== 'string' || !isAddress(value)) throw new Error(`${String(value)} is not an address`)
  return value
}
