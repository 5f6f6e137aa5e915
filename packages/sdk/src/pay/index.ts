export {
  ApprovalNeededError,
  ConfirmationDeclinedError,
  LimitExceededError,
  PaymentError,
  PaymentOutcomeUnknownError,
  PaymentRejectedError,
  PurchaseError,
  type Refusal,
  type RefusalReason,
  SigningError,
  UnreplayableBodyError,
  UnsupportedPaymentError,
} from './errors.ts'
export type {
  CountedLimit,
  Ledger,
  LedgerEntry,
  ReservationRequest,
  ReservationVerdict,
  SignedCredential,
} from './ledger.ts'
export { memoryLedger } from './memory-ledger.ts'
export type {
  AddedToken,
  PayingFetch,
  PayingFetchOptions,
  PayingRequestInit,
  PayLimits,
  Preference,
} from './options.ts'
export { createPayingFetch } from './paying-fetch.ts'
export {
  type Method,
  type Outcome,
  type PaymentRecord,
  type ProposedPayment,
  type Protocol,
  paymentOf,
} from './payment.ts'
export { streamBytesMax } from './request.ts'
export type { Signer, TempoCall, TempoTransactionRequest, TypedData } from './signer.ts'
export type { PayingWallet, WalletFetchOptions } from './wallet.ts'
