export {
  ApprovalNeededError,
  ConfirmationDeclinedError,
  LimitExceededError,
  PaymentError,
  PaymentOutcomeUnknownError,
  PaymentRejectedError,
  type Refusal,
  type RefusalReason,
  SigningError,
  UnreplayableBodyError,
  UnsupportedPaymentError,
} from './errors.ts'
export {
  type CountedLimit,
  type Ledger,
  memoryLedger,
  type ReservationRequest,
  type ReservationVerdict,
} from './ledger.ts'
export type { AddedToken, PayingFetchOptions, PayLimits, Preference } from './options.ts'
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
