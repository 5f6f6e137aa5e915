// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.24;

interface IToken {
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
}

/// What Relay's depository does with a deposit of a token, for local chains: it takes it, and tells. Nobody pays out for it.
contract TestRelayDepository {
    event RelayErc20Deposit(address from, address token, uint256 amount, bytes32 id);

    function depositErc20(address depositor, address token, uint256 amount, bytes32 id) external {
        require(IToken(token).transferFrom(msg.sender, address(this), amount), "TestRelayDepository: transfer failed");
        emit RelayErc20Deposit(depositor, token, amount, id);
    }
}
