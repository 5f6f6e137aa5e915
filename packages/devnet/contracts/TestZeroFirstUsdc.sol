// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {TestUsdc} from "./TestUsdc.sol";

/// Test money with the rule of Tether's USDT on Ethereum: an allowance that is not zero is set to zero before it gets another
/// value. Its storage is that of TestUsdc, so that the code can replace it.
contract TestZeroFirstUsdc is TestUsdc {
    function approve(address spender, uint256 value) public override returns (bool) {
        require(value == 0 || allowance[msg.sender][spender] == 0, "set the allowance to zero first");
        return super.approve(spender, value);
    }
}
