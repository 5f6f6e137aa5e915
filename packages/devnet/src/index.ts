export { type BridgeDeposit, type BridgeRelayer, createBridgeRelayer, type RelayerConduct } from './bridge-relayer.ts'
export { type CctpEnd, cctpFeeRecipient, installCctp } from './cctp.ts'
export { type ChainOptions, type DevChain, devAccount, startChain } from './chains.ts'
export { fundFees, fundNative, fundToken, type ReachableChain, sendFromDevAccount, tokenBalance } from './faucet.ts'
export { type FaultMode, type FaultProxy, startFaultProxy } from './fault-proxy.ts'
export { setL1Fee } from './l1-fee.ts'
export { installLifiDiamond } from './lifi-diamond.ts'
export { InUseError } from './lock.ts'
export { type Postgres, type PostgresOptions, startPostgres } from './postgres.ts'
export {
  exactPermit2ProxyAddress,
  multicall3Address,
  permit2Address,
  sandboxBridgeAddress,
  sandboxPoolAddress,
  uptoPermit2ProxyAddress,
  walletFactoryAddress,
} from './predeploys.ts'
export { installRelayDepository } from './relay-depository.ts'
export { addSanctioned, installSanctionsOracle, removeSanctioned } from './sanctions.ts'
export { fundSandbox } from './sandbox-market.ts'
export { deploySmartWallet, smartWalletAddress, smartWalletDeployment } from './smart-wallet.ts'
export { requireZeroFirst } from './zero-first.ts'
