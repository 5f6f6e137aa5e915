import { createServer } from 'node:http'
import type { Address } from '@purser/protocol'
import { x402Facilitator } from '@x402/core/facilitator'
import { toFacilitatorEvmSigner } from '@x402/evm'
import { ExactEvmScheme as FacilitatorScheme } from '@x402/evm/exact/facilitator'
import { ExactEvmScheme as ServerScheme } from '@x402/evm/exact/server'
import { paymentMiddleware, x402ResourceServer } from '@x402/express'
import express from 'express'
import { createPublicClient, createWalletClient, http } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import type { TransferStage } from './transfer-stage.ts'

const settler = privateKeyToAccount(generatePrivateKey())

/** Servers of sellers, which `close` ends. */
export function sellersOf(stage: () => TransferStage) {
  const closings: (() => Promise<unknown>)[] = []
  /** The official x402 server with the official facilitator: `GET /report` for 0.01 USDC. */
  async function officialShop(payTo: Address): Promise<string> {
    await stage().chain.setBalance({ address: settler.address, value: 10n ** 18n })
    const transport = http(stage().dev.rpcUrl)
    const reads = createPublicClient({ chain: baseSepolia, transport, pollingInterval: 20 })
    const writes = createWalletClient({ account: settler, chain: baseSepolia, transport })
    const signer = toFacilitatorEvmSigner({
      address: settler.address,
      getCode: (args) => reads.getCode(args),
      readContract: (args) => reads.readContract({ ...args, args: args.args ?? [] }),
      verifyTypedData: () => Promise.reject(new Error('not expected')),
      writeContract: (args) => writes.writeContract(args),
      sendTransaction: (args) => writes.sendTransaction(args),
      waitForTransactionReceipt: (args) => reads.waitForTransactionReceipt(args),
    })
    const facilitator = new x402Facilitator().register('eip155:84532', new FacilitatorScheme(signer))
    const kind = { x402Version: 2, scheme: 'exact', network: 'eip155:84532' } as const
    const server = new x402ResourceServer({
      verify: (payload, requirements) => facilitator.verify(payload, requirements),
      settle: (payload, requirements) => facilitator.settle(payload, requirements),
      getSupported: async () => ({ kinds: [kind], extensions: [], signers: {} }),
    }).register('eip155:84532', new ServerScheme())
    const accepts = { scheme: 'exact', network: 'eip155:84532', price: '$0.01', payTo } as const
    const app = express()
    app.use(paymentMiddleware({ 'GET /report': { accepts, description: 'Report', mimeType: 'text/plain' } }, server))
    app.get('/report', (_req, res) => void res.send('goods'))
    return serve(createServer(app))
  }

  async function serve(server: ReturnType<typeof createServer>): Promise<string> {
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', () => resolve()))
    closings.push(() => new Promise((resolve) => server.close(resolve)))
    const address = server.address()
    return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
  }

  return {
    officialShop,
    serve,
    async close() {
      for (const closing of closings) await closing()
    },
  }
}
