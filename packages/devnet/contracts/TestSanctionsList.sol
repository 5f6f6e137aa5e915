// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.24;

/// What Chainalysis' sanctions oracle answers to, for local chains: anybody may fill it.
contract TestSanctionsList {
    mapping(address => bool) private sanctioned;

    function addToSanctionsList(address[] calldata accounts) external {
        for (uint256 n = 0; n < accounts.length; n++) sanctioned[accounts[n]] = true;
    }

    function removeFromSanctionsList(address[] calldata accounts) external {
        for (uint256 n = 0; n < accounts.length; n++) sanctioned[accounts[n]] = false;
    }

    function isSanctioned(address account) external view returns (bool) {
        return sanctioned[account];
    }
}
