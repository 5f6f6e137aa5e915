import { DecryptCommand, EncryptCommand, KMSClient } from '@aws-sdk/client-kms'
import { unavailable } from './errors.ts'
import type { KeyEncryption } from './key-encryption.ts'

const attemptsMax = 3
const connectMsMax = 2_000
const responseMsMax = 5_000

/**
 * Data keys wrapped by AWS KMS. The associated data is the encryption context: KMS binds the ciphertext to it and logs it, so that its log shows
 * which seed was opened when. Source: AWS KMS API reference, Encrypt and Decrypt.
 */
export function awsKmsKeyEncryption(
  { keyArn, endpoint }: { readonly keyArn: string; readonly endpoint?: string | undefined },
  fingerprint: string,
): KeyEncryption {
  const client = new KMSClient({
    region: regionOf(keyArn),
    maxAttempts: attemptsMax,
    requestHandler: { connectionTimeout: connectMsMax, requestTimeout: responseMsMax, throwOnRequestTimeout: true },
    ...(endpoint !== undefined && { endpoint }),
  })
  const common = (associatedData: string) =>
    ({
      KeyId: keyArn,
      EncryptionContext: { purser: associatedData },
      EncryptionAlgorithm: 'SYMMETRIC_DEFAULT',
    }) as const
  return {
    fingerprint,
    async wrap(dataKey, associatedData) {
      const response = await client
        .send(new EncryptCommand({ ...common(associatedData), Plaintext: dataKey }))
        .catch(refused)
      return given(response.CiphertextBlob, 'Encrypt')
    },
    async unwrap(wrapped, associatedData) {
      const response = await client
        .send(new DecryptCommand({ ...common(associatedData), CiphertextBlob: wrapped }))
        .catch(refused)
      if (response.KeyId !== keyArn) throw new Error('AWS KMS answered with another key')
      return given(response.Plaintext, 'Decrypt')
    },
  }
}

/** Errors about the ciphertext are permanent; all others may be temporary. */
const permanentErrors = ['InvalidCiphertextException', 'IncorrectKeyException']

function refused(error: unknown): never {
  throw error instanceof Error && permanentErrors.includes(error.name) ? error : unavailable(error)
}

/** `arn:aws:kms:<region>:<account>:key/<id>` */
function regionOf(keyArn: string): string {
  const region = keyArn.split(':')[3]
  if (region === undefined || region === '') throw new Error('not the ARN of an AWS KMS key')
  return region
}

function given(bytes: Uint8Array | undefined, action: string): Uint8Array {
  if (bytes === undefined || bytes.length === 0) throw new Error(`AWS KMS returned no data for ${action}`)
  return bytes
}
