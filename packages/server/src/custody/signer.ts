import {
  type Address,
  addressOfPublicKey,
  bytesToHex,
  checksumAddress,
  type Hex,
  hexToBytes,
  sameAddress,
} from '@purser/protocol'
import { serializeTransaction } from 'viem/utils'
import { type Signatures, withFeePayer } from '../chain/index.ts'
import type { Signer } from '../chain/port.ts'

/** Signs for one account. Its key is unsealed for each signature and wiped after it; nothing here keeps or answers it. */
export async function createSigner(openKey: () => Promise<Uint8Array>, signatures: Signatures): Promise<Signer> {
  const account = addressOfPublicKey(await withKey(openKey, signatures.publicKeyOf), signatures.keccak)
  if (account === undefined) throw new Error('a private key has no account')
  const address: Address = checksumAddress(account, signatures.keccak)
  return {
    address,
    async signTempoFeePayer(transaction, feeToken) {
      if (sameAddress(transaction.sender, address)) throw new Error('an account cannot sponsor itself')
      const sign = async (digest: Uint8Array): Promise<Hex> => {
        const { signature, yParity } = await withKey(openKey, (privateKey) => signatures.sign(digest, privateKey))
        return `${bytesToHex(signature)}${yParity === 0 ? '1b' : '1c'}`
      }
      const raw = await withFeePayer(transaction, feeToken, { address, sign })
      return { raw, hash: bytesToHex(signatures.keccak(hexToBytes(raw))) }
    },
    async signTransaction(transaction) {
      const fields = {
        type: 'eip1559',
        chainId: transaction.chainId,
        nonce: Number(transaction.nonce),
        to: transaction.to,
        data: transaction.data,
        value: transaction.value,
        gas: transaction.gasLimit,
        maxFeePerGas: transaction.maxFeePerGas,
        maxPriorityFeePerGas: transaction.maxPriorityFeePerGas,
      } as const
      const hash = signatures.keccak(hexToBytes(serializeTransaction(fields)))
      const { signature, yParity } = await withKey(openKey, (privateKey) => signatures.sign(hash, privateKey))
      const r = bytesToHex(signature.subarray(0, 32))
      const s = bytesToHex(signature.subarray(32, 64))
      const raw = serializeTransaction(fields, { r, s, yParity })
      return { raw, hash: bytesToHex(signatures.keccak(hexToBytes(raw))) }
    },
  }
}

async function withKey<T>(openKey: () => Promise<Uint8Array>, use: (privateKey: Uint8Array) => T): Promise<T> {
  const privateKey = await openKey()
  try {
    return use(privateKey)
  } finally {
    privateKey.fill(0)
  }
}
