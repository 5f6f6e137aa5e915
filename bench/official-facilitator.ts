import { createServer } from 'node:http'
import { x402Facilitator } from '@x402/core/facilitator'
import { toFacilitatorEvmSigner } from '@x402/evm'
import { ExactEvmScheme } from '@x402/evm/exact/facilitator'
import express from 'express'
import { createPublicClient, createWalletClient, http, nonceManager } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import { listen, runAsChild, setting } from './child-side.ts'

/**
 * The official TypeScript facilitator, set up as documented, in the fastest measured configuration: JSON-RPC
 * batching, viem's nonce manager (without it most settlements of a burst are lost), and receipts polled often.
 */
await runAsChild(async () => {
  const key = setting('BENCH_SETTLER_KEY')
  if (!isHex(key)) throw new Error('BENCH_SETTLER_KEY is not hex')
  const account = privateKeyToAccount(key, { nonceManager })
  const transport = http(setting('BENCH_RPC_URL'), { batch: true })
  const pollingInterval = Number(setting('BENCH_RECEIPT_POLL_MS'))
  const reads = createPublicClient({ chain: baseSepolia, transport, pollingInterval })
  const writes = createWalletClient({ account, chain: baseSepolia, transport, pollingInterval })
  const signer = toFacilitatorEvmSigner({
    address: account.address,
    getCode: (args) => reads.getCode(args),
    readContract: (args) => reads.readContract({ ...args, args: args.args ?? [] }),
    // Required by the type; the scheme hashes and recovers by itself.
    verifyTypedData: () => Promise.reject(new Error('@x402/evm 2.27 does not ask for this')),
    writeContract: (args) => writes.writeContract(args),
    sendTransaction: (args) => writes.sendTransaction(args),
    waitForTransactionReceipt: (args) => reads.waitForTransactionReceipt(args),
  })
  const facilitator = new x402Facilitator().register(`eip155:${baseSepolia.id}`, new ExactEvmScheme(signer))

  const app = express()
  app.disable('x-powered-by')
  app.use(express.json())
  app.post('/verify', async (request, response) => {
    response.json(await facilitator.verify(request.body.paymentPayload, request.body.paymentRequirements))
  })
  app.post('/settle', async (request, response) => {
    response.json(await facilitator.settle(request.body.paymentPayload, request.body.paymentRequirements))
  })
  const { ready, stop } = await listen(createServer(app))
  return { ready: { ...ready, settler: account.address }, stop }
})

function isHex(text: string): text is `0x${string}` {
  return /^0x[0-9a-f]{64}$/i.test(text)
}
