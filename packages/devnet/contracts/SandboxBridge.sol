// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

interface IToken {
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
}

/// One end of a bridge between local chains: what is deposited here, a relayer pays out of what the other end holds. It trusts that
/// relayer, whose key is anvil's first and public: it is test money. No constructor: code is set at a known address.
contract SandboxBridge {
    address public constant RELAYER = 0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266;

    enum State {
        None,
        Open,
        Refunded,
        Failed
    }

    struct Deposit {
        State state;
        address depositor;
        address token;
        uint256 amount;
        uint256 destinationChainId;
        address destinationToken;
        address recipient;
        uint256 amountOutMin;
    }

    struct Fill {
        address token;
        address recipient;
        uint256 amount;
    }

    mapping(bytes32 => Deposit) public deposits;
    /// What was paid out here. An amount of zero for what was not.
    mapping(bytes32 => Fill) public fills;

    event Deposited(bytes32 indexed id);
    event Filled(bytes32 indexed id, address token, uint256 amount, address recipient);
    event Refunded(bytes32 indexed id);
    event Failed(bytes32 indexed id);

    modifier onlyRelayer() {
        require(msg.sender == RELAYER, "SandboxBridge: not the relayer");
        _;
    }

    receive() external payable {}

    function deposit(
        bytes32 id,
        address token,
        uint256 amount,
        uint256 destinationChainId,
        address destinationToken,
        address recipient,
        uint256 amountOutMin
    ) external payable {
        require(deposits[id].state == State.None, "SandboxBridge: number used");
        require(amount > 0, "SandboxBridge: nothing");
        require(msg.value == (token == address(0) ? amount : 0), "SandboxBridge: value");
        deposits[id] = Deposit(
            State.Open, msg.sender, token, amount, destinationChainId, destinationToken, recipient, amountOutMin
        );
        if (token != address(0)) {
            require(IToken(token).transferFrom(msg.sender, address(this), amount), "SandboxBridge: transfer failed");
        }
        emit Deposited(id);
    }

    /// Once for each number, so that a relayer that starts again pays nothing twice.
    function fill(bytes32 id, address token, uint256 amount, address recipient) external onlyRelayer {
        require(fills[id].amount == 0 && amount > 0, "SandboxBridge: filled");
        fills[id] = Fill(token, recipient, amount);
        _give(token, recipient, amount);
        emit Filled(id, token, amount, recipient);
    }

    function refund(bytes32 id) external onlyRelayer {
        Deposit storage one = deposits[id];
        require(one.state == State.Open || one.state == State.Failed, "SandboxBridge: not open");
        one.state = State.Refunded;
        _give(one.token, one.depositor, one.amount);
        emit Refunded(id);
    }

    /// Gives up without giving back: the money comes later, by `refund`.
    function fail(bytes32 id) external onlyRelayer {
        require(deposits[id].state == State.Open, "SandboxBridge: not open");
        deposits[id].state = State.Failed;
        emit Failed(id);
    }

    function _give(address token, address to, uint256 amount) private {
        if (token != address(0)) {
            require(IToken(token).transfer(to, amount), "SandboxBridge: transfer failed");
            return;
        }
        (bool sent,) = to.call{value: amount}("");
        require(sent, "SandboxBridge: transfer failed");
    }
}
