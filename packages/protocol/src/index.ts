export type { Address } from './address.ts'
export { addressOfPublicKey, checksumAddress, isAddress, parseAddress, sameAddress, zeroAddress } from './address.ts'
export { addressBlock, addressSite } from './address-block.ts'
export { composeApiKey, parseApiKey } from './api-key.ts'
export { type AuditedRecord, auditGenesis, auditRecordBytes } from './audit-chain.ts'
export { decodeBase62, encodeBase62 } from './base62.ts'
export {
  decodeBase64,
  decodeBase64Url,
  decodeJsonBase64,
  encodeBase64,
  encodeBase64Url,
  encodeJsonBase64,
} from './base64.ts'
export type { Hex } from './bytes.ts'
export {
  bytesToHex,
  concatBytes,
  equalBytes,
  hexToBytes,
  isHex,
  readUint256,
  uint256Max,
  uint256ToBytes,
  writeHex,
  writeUint256,
} from './bytes.ts'
export type { EvmCaip2 } from './caip.ts'
export { caip2OfChainId, chainIdOfCaip2, formatCaip10, parseCaip2, parseCaip10 } from './caip.ts'
export { canonicalJson } from './canonical-json.ts'
export type { Environment } from './chains.ts'
export {
  chainNameOf,
  isChain,
  networkByCaip2,
  networkByName,
  networkByX402V1Name,
  requireNetwork,
  resolveNetwork,
  tokenByAddress,
  tokenBySymbol,
} from './chains.ts'
export type { ChunkCount, ChunkLimits, CollectedBytes, TakenChunk } from './collect-bytes.ts'
export { collectBytes, countChunks } from './collect-bytes.ts'
export { isConfidential } from './confidential.ts'
export { crc32 } from './crc32.ts'
export type { DurationFault } from './duration.ts'
export { durationSecondsMax, parseDuration } from './duration.ts'
export type { Eip712Domain, TransferAuthorization } from './eip712.ts'
export {
  domainSeparator,
  transferWithAuthorizationDigest,
  transferWithAuthorizationType,
  typedDataDigest,
} from './eip712.ts'
export type { EventsHead } from './event-chain.ts'
export { eventHash, eventsHeadOf, noEvents } from './event-chain.ts'
export type { EventDefinition, EventField, EventPayloads, EventSample, EventType } from './events.ts'
export { eventCatalogue, eventTypes, findPayloadFault, isEventType } from './events.ts'
export type { Call3, Call3Result, TransferSignature } from './evm-abi.ts'
export {
  AbiMalformed,
  addressWord,
  decodeAggregate3,
  decodeBool,
  decodeBytes32,
  decodeRevertReason,
  decodeString,
  decodeUint256,
  encodeAggregate3,
  encodeAuthorizationState,
  encodeBalanceOf,
  encodeIsSanctioned,
  encodeIsValidSignature,
  encodeTransfer,
  encodeTransferWithAuthorization,
  multicall3Address,
  selectorOf,
  tokenReads,
  uintWord,
} from './evm-abi.ts'
export type { RawLog } from './evm-logs.ts'
export { decodeAuthorizationUsedLog, decodeTransferLog, decodeTransferWithMemoLog, topics } from './evm-logs.ts'
export type { Keccak } from './hash.ts'
export { keccak256, sha256 } from './hash.ts'
export type { HdCurve, HdPrivateNode, HdPublicNode } from './hd.ts'
export {
  evmAccountPath,
  hdChildAddress,
  hdHardened,
  hdMaster,
  hdPrivateChild,
  hdPrivatePath,
  hdPublicChild,
  hdPublicOf,
  parseHdPath,
  wipeHdNode,
} from './hd.ts'
export { parseInstant } from './iso-instant.ts'
export { withoutReferences } from './json-references.ts'
export type { Jws, JwsHeader } from './jws.ts'
export { composeJws, jwsSigningInput, parseJws } from './jws.ts'
export { l1FeeOf, l1ShareBytes } from './l1-fee.ts'
export type { MerkleInclusion } from './merkle.ts'
export {
  isMerkleIncluded,
  merkleLeafHash,
  merkleLeavesMax,
  merkleParents,
  merklePath,
  merklePathPlaces,
  merkleRoot,
} from './merkle.ts'
export type { AmountFault } from './money.ts'
export { attoOf, formatAmount, parseAmount, parseRaw, priceInStablecoin } from './money.ts'
export { orderOffers } from './mpp/accept-payment.ts'
export { attributionMemo, isMemoBound } from './mpp/attribution.ts'
export type { MppChallenge } from './mpp/challenge.ts'
export { challengeBinding, formatChallenge, formatChallenges } from './mpp/challenge.ts'
export { parseChallenges } from './mpp/challenge-header.ts'
export type { EvmChargeOffer, EvmChargeRequest, TempoChargeMode, TempoChargeRequest } from './mpp/charge.ts'
export { evmChargeRequest, parseEvmChargeRequest, parseTempoChargeRequest, tempoChargeRequest } from './mpp/charge.ts'
export type { EvmAuthorizationPayload, MppCredential, TempoPayload } from './mpp/credential.ts'
export {
  formatMppCredential,
  mppCredentialLengthMax,
  mppCredentialsIn,
  parseEvmPayload,
  parseMppCredential,
  parseTempoPayload,
} from './mpp/credential.ts'
export { contentDigest, sameDigest } from './mpp/digest.ts'
export type { DiscoveryDocument, DiscoveryHead, PaymentOffer, SoldRoute } from './mpp/discovery.ts'
export { discoveryDocument } from './mpp/discovery.ts'
export { decodeMppJson, encodeMppJson } from './mpp/encoding.ts'
export { chargeNonce } from './mpp/evm-nonce.ts'
export type { MppFault, MppParsed, MppProblem } from './mpp/problems.ts'
export { mppProblemBase, mppProblems, mppProblemType } from './mpp/problems.ts'
export type { ProofSubject } from './mpp/proof.ts'
export { proofDigest, proofTypedData } from './mpp/proof.ts'
export type { MppReceipt } from './mpp/receipt.ts'
export { formatReceipt, parseReceipt } from './mpp/receipt.ts'
export { formatPayerSource, parsePayerSource } from './mpp/source.ts'
export type { DepositFinality, L1FeeOracle, TokenInfo } from './network-facts.ts'
export type { Chain, Network, NetworkName } from './networks.ts'
export { chains, isFinalAtDepth, isTempo, networks } from './networks.ts'
export { formatUsd, parseUsd, usdDecimals, usdOf } from './paying/dollars.ts'
export type { PaymentHeader } from './paying/draft.ts'
export { authorizationSecondsMax, signedHeader } from './paying/draft.ts'
export { mppAuthenticateLengthMax, mppEndSeconds, mppHeaderOf, offersOfMpp } from './paying/mpp-offers.ts'
export type {
  AuthorizationDraft,
  AuthorizationOffer,
  CredentialDraft,
  Offer402,
  OfferReading,
  OfferRefusal,
  OfferRefusalReason,
  OfferRules,
  PayingMethod,
  PayingProtocol,
  Price,
  TempoOffer,
} from './paying/offer.ts'
export { byPrice, offerOrder } from './paying/offer.ts'
export type { HeaderReader, ReadReceipt } from './paying/receipt.ts'
export {
  carriesCredential,
  type PaymentRefusal,
  type RefusingResponse,
  readReceipt,
  readRefusal,
  readSettleResponse,
} from './paying/receipt.ts'
export { offersOfV1, offersOfV2 } from './paying/x402-offers.ts'
export type { RedemptionClaim } from './redemption.ts'
export { redemptionHash, redemptionMessage } from './redemption.ts'
export { routePatternOf } from './route-pattern.ts'
export type { SealFacts } from './seal.ts'
export {
  buildManifest,
  documentContent,
  itemLeafHash,
  itemProof,
  manifestHash,
  merkleRootOf,
  sealedItemsOf,
  statementOf,
} from './seal.ts'
export type {
  ItemProof,
  SealedItem,
  SealKey,
  SealManifest,
  SealProof,
  SealRead,
  SealStatement,
  SealTrouble,
} from './seal-parse.ts'
export { readItemProof, readManifest, readSealProof, sealLimits } from './seal-parse.ts'
export type { SealFault, SealVerdict, VerifyEd25519 } from './seal-verify.ts'
export { verifyItem, verifySeal } from './seal-verify.ts'
export type {
  ContractSignature,
  EcdsaFault,
  EcdsaSignature,
  Eip6492Signature,
  Recover,
  SignatureFault,
} from './signature.ts'
export { parseEcdsa, parseSignature, recoverAddress, signatureBytesMax } from './signature.ts'
export type { Tip20Transfer } from './tip20.ts'
export {
  decodeTip20Transfer,
  encodeGetNonce,
  encodeTransferWithMemo,
  tempoFeeManager,
  tempoNonceManager,
} from './tip20.ts'
export { encodeTypeId, newTypeId, parseTypeId, uuidV7 } from './typeid.ts'
export { decodeUtf8, utf8 } from './utf8.ts'
export { composeWebhookSecret, parseWebhookSecret } from './webhook-secret.ts'
export type {
  HmacSha256,
  SignEd25519,
  WebhookHeaders,
  WebhookMac,
  WebhookMessage,
  WebhookSigner,
  WebhookSigners,
  WebhookSigningInput,
} from './webhook-signature.ts'
export {
  createWebhookSigner,
  isWebhookId,
  isWebhookTimestamp,
  signWebhook,
  standardSigningText,
} from './webhook-signature.ts'
export type { ServiceWebhook, StandardWebhook, WebhookFault, WebhookMoment } from './webhook-verify.ts'
export { verifyServiceWebhook, verifyStandardWebhook, verifyWebhookByKey } from './webhook-verify.ts'
export type { AuthorizationCheck, AuthorizationVerdict, SignatureKind } from './x402/check-authorization.ts'
export { checkAuthorization, settleMarginSeconds } from './x402/check-authorization.ts'
export type { Expected, Offer } from './x402/exact-evm.ts'
export {
  expectedOf,
  paymentRequiredV1,
  paymentRequiredV2,
  requirementsV1,
  requirementsV2,
  supportedResponse,
} from './x402/exact-evm.ts'
export {
  decodePayment,
  decodePaymentRequired,
  decodePaymentResponse,
  encodePayment,
  encodePaymentRequired,
  encodePaymentResponse,
  headerLengthMax,
  x402Headers,
} from './x402/headers.ts'
export type {
  ExactEvmPayload,
  FacilitatorRequest,
  JsonObject,
  MessageFault,
  Parsed,
  PaymentPayload,
  PaymentPayloadV1,
  PaymentPayloadV2,
  PaymentRequiredV1,
  PaymentRequiredV2,
  PaymentRequirementsV1,
  PaymentRequirementsV2,
  ResourceInfo,
  SettleResponse,
  SupportedKind,
  SupportedResponse,
  VerifyResponse,
  WireAuthorization,
} from './x402/messages.ts'
export {
  offerPayload,
  offerReceiptKey,
  offersExtension,
  receiptExtension,
  receiptPayload,
} from './x402/offer-receipt.ts'
export {
  parseFacilitatorRequest,
  parsePaymentPayload,
  parsePaymentRequiredV1,
  parsePaymentRequiredV2,
  parsePaymentRequirementsV1,
  parsePaymentRequirementsV2,
  parseSettleResponse,
  parseSupportedResponse,
  parseVerifyResponse,
} from './x402/parse.ts'
export type { Permit2Payment, Permit2Scheme, WirePermit2Authorization } from './x402/permit2.ts'
export {
  expectedPermit2Of,
  parsePermit2Payment,
  permit2Address,
  permit2Proxies,
} from './x402/permit2.ts'
export type { Permit2Settlement } from './x402/permit2-abi.ts'
export {
  containsPermit2Settle,
  encodeNonceBitmap,
  encodePermit2Allowance,
  encodePermit2Settle,
  isNonceSpent,
  isPermit2Settle,
  permit2SettledTopics,
  reasonOfPermit2Revert,
} from './x402/permit2-abi.ts'
export type { Permit2Check, Permit2Verdict } from './x402/permit2-check.ts'
export { checkPermit2 } from './x402/permit2-check.ts'
export type { Permit2Transfer } from './x402/permit2-digest.ts'
export { permit2Digest, permit2DomainSeparator } from './x402/permit2-digest.ts'
export type { Permit2612 } from './x402/permit2-eip2612.ts'
export { eip2612GasSponsoring } from './x402/permit2-eip2612.ts'
export type { Reason } from './x402/reasons.ts'
export { isReason, reasonOfRevert, reasons } from './x402/reasons.ts'
