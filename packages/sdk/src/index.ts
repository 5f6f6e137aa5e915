export type { Account, SignInSession, Usage } from './account.ts'
export type {
  ApiKeyRecord,
  ApiKeyRequest,
  ApiKeyRequestIn,
  Environment,
  NewApiKey,
  NewApiKeyIn,
  RevokedKey,
  RevokeQuery,
} from './api-keys.ts'
export type { Approval, ApprovalQuery, ApprovalRefusal } from './approvals.ts'
export type { BillingUsage, Plan } from './billing.ts'
export {
  type BrowserSession,
  type ConnectionOptions,
  createPurser,
  type Purser,
  type PurserOptions,
  type SessionOptions,
} from './client.ts'
export {
  AuthenticationError,
  ConflictError,
  ConnectionError,
  LimitError,
  NotFoundError,
  PaymentRefusedError,
  PermissionDeniedError,
  PurserError,
  RateLimitError,
  UnavailableError,
  ValidationError,
} from './errors.ts'
export type {
  DiscoveredResources,
  FacilitatorRequest,
  FacilitatorSettlement,
  FacilitatorSupport,
  FacilitatorVerification,
} from './facilitator.ts'
export type { operations, paths } from './generated/openapi.ts'
export type {
  LegacyBalance,
  LegacyBalanceQuery,
  LegacyWallet,
  LegacyWithdrawal,
  NewLegacyWallet,
  NewLegacyWithdrawal,
} from './legacy-wallet.ts'
export type {
  Balance,
  BalanceQuery,
  ChildAddress,
  ChildAddressChange,
  MasterWallet,
  MasterWalletChange,
  MasterWalletQuery,
  NewChildAddresses,
  NewMasterWallet,
  PolicyDocument,
  Sweep,
  SweepRequest,
  SweepSummary,
  TransactionQuery,
  WalletPolicy,
  WalletTransaction,
} from './managed-wallets.ts'
export type { FileNaming, FileSource } from './multipart.ts'
export type {
  AuditQuery,
  AuditRecord,
  FoundedOrganisation,
  Member,
  MemberChange,
  NewMember,
  NewOrganisation,
  Organisation,
  OrganisationChange,
  Role,
} from './organisations.ts'
export type { Listing, Page, PageQuery } from './paging.ts'
export type {
  Challenge,
  ChallengeRequest,
  ChallengesRequest,
  Payment,
  PaymentLog,
  PaymentLogFilters,
  PaymentLogQuery,
  PaymentStatistics,
  PaymentStatisticsQuery,
  PaymentStatus,
  Protocol,
  RouteSummary,
  Settlement,
  SettleRequest,
  Verification,
  VerifiedPayment,
  VerifyRequest,
  X402V1Body,
} from './payments.ts'
export type { FieldFault, Problem } from './problem.ts'
export type {
  RegistryQuery,
  RegistryRoute,
  RegistryRouteChange,
  RouteSnapshot,
  SnapshotAccepted,
} from './registry.ts'
export type { LoggedRequest, RequestQuery } from './requests.ts'
export type { RetryPolicy } from './retry.ts'
export type { NewSession, OpenedSession, Session, SessionCheck } from './sessions.ts'
export type { ListenOptions, ListenQuery, SignedDelivery } from './signed-deliveries.ts'
export type { ClockChange, NewClockChange, NewTestDeposit, NewTestPayment, TestDeposit } from './testing.ts'
export type { NewTransfer, Transfer, TransferQuery, TransferQuote } from './transfers.ts'
export type { CallOptions, Method, QueryValue, RequestOptions } from './transport.ts'
export type { EventsQuery } from './vault-events.ts'
export type {
  NewDocument,
  NewVault,
  NewVaultEvent,
  NewVaultToken,
  Vault,
  VaultChange,
  VaultDocument,
  VaultEvent,
  VaultFile,
  VaultQuota,
  VaultState,
  VaultStatus,
  VaultToken,
  VaultTokenRecord,
} from './vault-records.ts'
export type {
  ByoWallet,
  ByoWalletChange,
  Chain,
  ChainName,
  HoldSummary,
  NewByoWallet,
  NewUrlPayment,
  NewWalletPayment,
  RescanRequest,
  RescanResult,
  Token,
  UrlPayment,
  WalletPayment,
} from './wallets.ts'
export type {
  CreatedWebhook,
  EventQuery,
  EventSamples,
  ListenerSecret,
  NewWebhook,
  RecordedEvent,
  Replayed,
  ReplayRequest,
  ResendRequest,
  Resent,
  RotatedSecret,
  TestedWebhook,
  TriggeredEvent,
  TriggerRequest,
  Webhook,
  WebhookAttempt,
  WebhookAttemptQuery,
  WebhookChange,
} from './webhook-endpoints.ts'
export type { BankAccount, NewBankAccount, NewWithdrawal, Withdrawal, WithdrawalQuery } from './withdrawals.ts'
