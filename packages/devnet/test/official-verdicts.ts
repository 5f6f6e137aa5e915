import { x402Facilitator } from '@x402/core/facilitator'
import { resetAssetContractCache, toFacilitatorEvmSigner } from '@x402/evm'
import { registerExactEvmScheme } from '@x402/evm/exact/facilitator'
import { createPublicClient, createWalletClient, http } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import type { DevChain } from '../src/chains.ts'

/**
 * The official facilitator on the same chain, set up as in its documentation, to compare its results on the same inputs.
 */
export function officialFacilitator(chain: DevChain): x402Facilitator {
  resetAssetContractCache()
  const transport = http(chain.rpcUrl)
  const account = privateKeyToAccount(generatePrivateKey())
  const reads = createPublicClient({ chain: baseSepolia, transport })
  const writes = createWalletClient({ account, chain: baseSepolia, transport })
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
  return registerExactEvmScheme(new x402Facilitator(), { signer, networks: 'eip155:84532' })
}
