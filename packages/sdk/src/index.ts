export type { Account } from './account.ts'
export { createPurser, type Purser, type PurserOptions } from './client.ts'
export {
  AuthenticationError,
  ConflictError,
  ConnectionError,
  LimitError,
  NotFoundError,
  PaymentRefusedError,
  PurserError,
  RateLimitError,
  UnavailableError,
  ValidationError,
} from './errors.ts'
export type { ApiKeyRecord, Environment, Member, NewApiKey, Organisation, Role } from './organisations.ts'
export type { Listing, Page, PageQuery } from './paging.ts'
export type {
  Challenge,
  ChallengeRequest,
  Payment,
  PaymentLog,
  PaymentLogFilters,
  PaymentLogQuery,
  PaymentStatus,
  Protocol,
  RouteSummary,
  Settlement,
  SettleRequest,
  Verification,
  VerifiedPayment,
  VerifyRequest,
} from './payments.ts'
export type { FieldFault, Problem } from './problem.ts'
export type { RetryPolicy } from './retry.ts'
export type { CallOptions, Method, QueryValue, RequestOptions } from './transport.ts'
export type { ByoWallet, Chain, NewByoWallet } from './wallets.ts'
