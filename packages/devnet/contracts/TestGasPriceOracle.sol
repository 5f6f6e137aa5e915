// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.24;

/// What the predeploy GasPriceOracle of OP Stack networks answers since Fjord and Isthmus, for local chains. Its two numbers are set as storage.
contract TestGasPriceOracle {
    /// Wei for 10^12 bytes of what is estimated to be posted on Ethereum.
    uint256 private scaledPrice;
    uint256 private operatorFee;

    /// Specifications, Fjord, L1-Cost fees: the size is taken as one that does not compress, with the signature added.
    function getL1FeeUpperBound(uint256 unsignedBytes) external view returns (uint256) {
        uint256 signedBytes = unsignedBytes + 68;
        uint256 scaled = 836_500 * (signedBytes + signedBytes / 255 + 16);
        uint256 estimated = scaled > 142_585_600 ? scaled - 42_585_600 : 100_000_000;
        return (estimated * scaledPrice) / 1e12;
    }

    function getOperatorFee(uint256) external view returns (uint256) {
        return operatorFee;
    }
}
