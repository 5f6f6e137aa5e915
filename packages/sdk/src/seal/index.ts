export {
  buildManifest,
  documentContent,
  type ItemProof,
  itemProof,
  manifestHash,
  merkleRootOf,
  readItemProof,
  readSealProof,
  type SealedItem,
  type SealKey,
  type SealManifest,
  type SealProof,
  type SealStatement,
} from '@purser/protocol'
export { type AuditLogCheck, type AuditLogVerdict, verifyAuditLog } from './audit-chain.ts'
export { type Content, type ContentDigest, contentBytesMax } from './content.ts'
export { type FetchKeysOptions, fetchKeys, KeysUnavailableError } from './fetch-keys.ts'
export type { Jwks } from './keys.ts'
export { type ReceiptFault, type ReceiptStatement, type ReceiptVerdict, verifyReceipt } from './receipt.ts'
export type { Fault, Verdict } from './verdict.ts'
export { type TrustedKeys, type VerifyItemOptions, type VerifyOptions, verifyItem, verifySeal } from './verify.ts'
